"""Download Multi30K's raw files and verify their checksums. No other module uses the network."""

import gzip
import hashlib
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, make_folder
from pysimt_sac.corpora.text_files import find_text

MULTI30K_ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
TIMEOUT_SECONDS = 60

# SHA-256 of the text itself, not of the compressed file.
MULTI30K_CHECKSUMS = {
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    "test_2017_mscoco.en": "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    "test_2017_mscoco.de": "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    "test_2017_mscoco.fr": "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
}


def download_multi30k(folder: Path, languages: Iterable[str], log: Callable[[str], None]) -> None:
    """Download the files of these languages that are missing from the folder."""
    wanted = [name for name in MULTI30K_CHECKSUMS if name.rpartition(".")[2] in set(languages)]
    missing = [name for name in wanted if find_text(folder, name) is None]
    for name in missing:
        log(f"downloading {name}.gz")
        content = fetch(f"{MULTI30K_ADDRESS}/{name}.gz")
        verify(name, content)
        make_folder(folder)
        with atomic_write(folder / f"{name}.gz", "wb") as stream:
            stream.write(content)


def fetch(address: str) -> bytes:
    """Return the content of a URL."""
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as error:
        raise UserError(f"the server responded with {error.code} {error.reason}", address) from error
    except (urllib.error.URLError, OSError) as error:
        cause = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or cause
        hint = "without a network, copy the raw files into --raw and leave --download out"
        raise UserError(f"cannot be downloaded: {reason}", address, hint) from error


def verify(name: str, compressed: bytes) -> None:
    """Reject a file with an unexpected checksum."""
    try:
        text = gzip.decompress(compressed)
    except (EOFError, OSError, zlib.error) as error:
        raise UserError("the downloaded file is not a gzip file", f"{name}.gz", "try again later") from error
    if hashlib.sha256(text).hexdigest() != MULTI30K_CHECKSUMS[name]:
        raise UserError("the downloaded file has an unexpected checksum", f"{name}.gz", "try again later")
