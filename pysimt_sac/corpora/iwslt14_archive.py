"""Reading IWSLT14's official archive: tagged training text and XML test sets become plain parallel files.

Called by `iwslt14` only. The archive of a pair, de-en.tgz, has train.tags.de-en.de and .en, in which some lines are
about the talk, and IWSLT14.TED.dev2010.de-en.de.xml and the like, in which sentences are in <seg> elements.
"""

import html
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pysimt_sac.corpora.raw_files import require_folder
from pysimt_sac.errors import UserError
from pysimt_sac.files import atomic_write, make_folder, stream_lines, why

# Lines of the training text that are not translated, the same in both languages.
METADATA = re.compile(r"\s*</?(url|keywords|talkid|speaker|reviewer|translator|doc)\b")
# Titles and descriptions are translated: only their tags go.
TAGS = re.compile(r"</?(title|description)>")
SEGMENT = re.compile(r"<seg id=\"?(\d+)\"?>(.*?)</seg>")
ARCHIVE_ENDINGS = (".tgz", ".tar.gz")


def plain_folder(raw: Path, pair: str, scratch: Path) -> Path:
    """A folder of plain parallel files: `raw` itself, or one made in `scratch` from what `raw` has of the archive."""
    for archive in (raw, *(raw / f"{pair}{ending}" for ending in ARCHIVE_ENDINGS)):
        if archive.is_file():
            return unpack_folder(extract(archive, make_folder(scratch / "archive")), pair, scratch)
    for folder in (raw, raw / pair):
        if any(folder.glob(f"train.tags.{pair}.*")):
            return unpack_folder(folder, pair, scratch)
    return require_folder(raw)


def extract(archive: Path, folder: Path) -> Path:
    """Copy the text files of an archive into one folder, whatever folders they are in."""
    try:
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() else None
                name = Path(member.name).name
                if content is not None and (name.startswith("train.tags.") or name.endswith(".xml")):
                    with atomic_write(folder / name, "wb") as stream:
                        shutil.copyfileobj(content, stream)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError("broken archive", archive, "fetch it again") from error
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", archive) from error
    return folder


def unpack_folder(folder: Path, pair: str, scratch: Path) -> Path:
    """Write train and test, both languages, as plain text."""
    plain = make_folder(scratch / "plain")
    lengths = {}
    for language in pair.split("-"):
        tagged = folder / f"train.tags.{pair}.{language}"
        lengths[tagged.name] = write_text(plain / f"train.{language}", training_text(stream_lines(tagged)))
    require_equal(lengths, folder)
    sets = test_sets(folder, pair)
    for language in pair.split("-"):
        sentences = (sentence for name in sets for sentence in segments(folder / f"{name}.{language}.xml"))
        write_text(plain / f"test.{language}", sentences)
    return plain


def training_text(lines: Iterable[str]) -> Iterator[str]:
    """The sentences among the lines of a tagged training text."""
    for line in lines:
        if not METADATA.match(line):
            yield TAGS.sub("", line).strip()


def test_sets(folder: Path, pair: str) -> list[str]:
    """The names of the archive's dev and tst sets, by kind and year, without their endings; both sides compared."""
    source, target = pair.split("-")
    endings = {language: f".{language}.xml" for language in (source, target)}
    found = [path.name.removesuffix(endings[source]) for path in folder.glob(f"*.{pair}{endings[source]}")]
    if not found:
        raise UserError(f"no *.{pair}{endings[source]} here", folder, "the archive's test sets are needed, too")
    for name in found:
        counts = {
            f"{name}{ending}": sum(1 for _ in segments(folder / f"{name}{ending}")) for ending in endings.values()
        }
        require_equal(counts, folder)
    return sorted(found, key=lambda name: (name.split(".")[2:], name))  # IWSLT14.TED.dev2010.de-en: dev2010 decides


def segments(path: Path) -> Iterator[str]:
    """The sentences of an XML file, which is not always well-formed: hence no XML parser."""
    for line in stream_lines(path, "test set"):
        for match in SEGMENT.finditer(line):
            # The usual scripts make typographic apostrophes plain in the test sets.
            yield html.unescape(match[2]).replace("’", "'").strip()


def require_equal(lengths: dict[str, int], folder: Path) -> None:
    """Both languages must have as many sentences."""
    if len(set(lengths.values())) > 1:
        found = " but ".join(f"{name} has {length:,} sentences" for name, length in lengths.items())
        raise UserError(found, folder, "the archive is damaged; fetch it again")


def write_text(path: Path, lines: Iterable[str]) -> int:
    """Write lines of text as they come and count them."""
    count = 0
    with atomic_write(path) as stream:
        for line in lines:
            stream.write(f"{line}\n")
            count += 1
    return count
