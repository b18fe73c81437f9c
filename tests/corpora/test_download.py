"""Fetching raw files: verified, only what is missing, and a clear word without a network."""

import gzip
import hashlib
import io
import urllib.error

import pytest

from pysimt_sac.corpora import download

TEXT = b"a sentence\n"


@pytest.fixture
def server(monkeypatch):
    """A server that has one sentence under every name; the names that were asked for."""
    asked = []

    def urlopen(address, timeout):
        asked.append(address.rpartition("/")[2])
        return io.BytesIO(gzip.compress(TEXT))

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def test_only_missing_files_are_fetched(server, monkeypatch, tmp_path):
    checksum = hashlib.sha256(TEXT).hexdigest()
    monkeypatch.setattr(download, "MULTI30K_CHECKSUMS", dict.fromkeys(["train.en", "train.de", "val.en"], checksum))
    (tmp_path / "train.en").write_bytes(TEXT)
    messages = []
    download.download_multi30k(tmp_path, ["en"], messages.append)
    assert server == ["val.en.gz"]
    assert gzip.decompress((tmp_path / "val.en.gz").read_bytes()) == TEXT
    assert messages == ["downloading val.en.gz"]


def test_a_wrong_checksum_is_refused(server, refused, tmp_path):
    refused(
        "train.en.gz: the downloaded file has an unexpected checksum",
        "multi30k",
        "--download",
        "--raw",
        tmp_path / "raw",
        "--out",
        tmp_path / "out",
    )
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_one_line_explains_it(monkeypatch, prepare, tmp_path):
    def urlopen(address, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    status, _, progress = prepare("multi30k", "--download", "--raw", tmp_path / "raw", "--out", tmp_path / "out")
    assert status == 2
    assert "cannot be downloaded: Name or service not known (without a network" in progress.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_the_checksums_are_those_of_the_published_files(research_data):
    for name, checksum in download.MULTI30K_CHECKSUMS.items():
        text = gzip.decompress((research_data / f"data/multi30k/raw/{name}.gz").read_bytes())
        assert hashlib.sha256(text).hexdigest() == checksum, name
