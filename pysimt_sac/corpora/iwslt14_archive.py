"""Extract plain parallel files from IWSLT14's official archive.

The archive of a pair, de-en.tgz, contains train.tags.de-en.de and .en, with metadata lines, and XML files such as
IWSLT14.TED.dev2010.de-en.de.xml, with sentences in <seg> elements.
"""

import html
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, make_folder, stream_lines, why
from pysimt_sac.corpora.raw_files import require_folder

# Metadata lines in the training text.
METADATA = re.compile(r"\s*</?(url|keywords|talkid|speaker|reviewer|translator|doc)\b")
# Titles and descriptions are parallel text, so only their tags are removed.
TAGS = re.compile(r"</?(title|description)>")
SEGMENT = re.compile(r"<seg id=\"?(\d+)\"?>(.*?)</seg>")
ARCHIVE_ENDINGS = (".tgz", ".tar.gz")


def plain_folder(raw: Path, pair: str, scratch: Path) -> Path:
    """Return a folder of plain parallel files: `raw`, or one in `scratch` if `raw` is the archive or its content."""
    for archive in (raw, *(raw / f"{pair}{ending}" for ending in ARCHIVE_ENDINGS)):
        if archive.is_file():
            return unpack_folder(extract(archive, make_folder(scratch / "archive")), pair, scratch)
    for folder in (raw, raw / pair):
        if any(folder.glob(f"train.tags.{pair}.*")):
            return unpack_folder(folder, pair, scratch)
    return require_folder(raw)


def extract(archive: Path, folder: Path) -> Path:
    """Extract the text files of an archive into one folder."""
    try:
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() else None
                name = Path(member.name).name
                if content is not None and (name.startswith("train.tags.") or name.endswith(".xml")):
                    with atomic_write(folder / name, "wb") as stream:
                        shutil.copyfileobj(content, stream)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError("broken archive", archive, "download it again") from error
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", archive) from error
    return folder


def unpack_folder(folder: Path, pair: str, scratch: Path) -> Path:
    """Write the training text and the test set of both languages as plain text."""
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
    """Yield the sentences of a tagged training text."""
    for line in lines:
        if not METADATA.match(line):
            yield TAGS.sub("", line).strip()


def test_sets(folder: Path, pair: str) -> list[str]:
    """Check that both sides of the archive's dev and tst sets have equal lengths; return the sorted names."""
    source, target = pair.split("-")
    endings = {language: f".{language}.xml" for language in (source, target)}
    found = [path.name.removesuffix(endings[source]) for path in folder.glob(f"*.{pair}{endings[source]}")]
    if not found:
        raise UserError(f"no *.{pair}{endings[source]} here", folder, "the archive's test sets are required")
    for name in found:
        counts = {
            f"{name}{ending}": sum(1 for _ in segments(folder / f"{name}{ending}")) for ending in endings.values()
        }
        require_equal(counts, folder)
    return sorted(found, key=lambda name: (name.split(".")[2:], name))  # by dev2010 in IWSLT14.TED.dev2010.de-en


def segments(path: Path) -> Iterator[str]:
    """Yield the sentences of an XML file, which need not be well-formed."""
    for line in stream_lines(path, "test set"):
        for match in SEGMENT.finditer(line):
            # The usual scripts replace typographic apostrophes in the test sets.
            yield html.unescape(match[2]).replace("’", "'").strip()


def require_equal(lengths: dict[str, int], folder: Path) -> None:
    """Reject sides with different numbers of sentences."""
    if len(set(lengths.values())) > 1:
        found = " but ".join(f"{name} has {length:,} sentences" for name, length in lengths.items())
        raise UserError(found, folder, "the archive is damaged; download it again")


def write_text(path: Path, lines: Iterable[str]) -> int:
    """Write lines and return their number."""
    count = 0
    with atomic_write(path) as stream:
        for line in lines:
            stream.write(f"{line}\n")
            count += 1
    return count
