"""Downloads: verified, resumed, one at a time; a fault leaves a sentence and nothing half-done."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import small_sets
from small_sets import IDX

from nngp_paper import datasets
from nngp_paper.datasets import download
from nngp_paper.datasets.catalogue import IMAGE_SETS

ZIPPED = [f"{name}.gz" for name in IDX]
FIRST = ZIPPED[0]


@pytest.fixture
def server(grey, monkeypatch):
    """A server of the small MNIST."""
    with small_sets.serve(dict(grey["mnist"][2])) as server:
        entry = IMAGE_SETS["mnist"]
        monkeypatch.setitem(IMAGE_SETS, "mnist", replace(entry, servers=(server.url,)))
        yield server


class Bar:
    """Stands in for the progress bar, and keeps what it was told."""

    def __init__(self, monkeypatch, tell=lambda work: None):
        self.phase, self.total, self.done, self.tell = "", 0.0, [], tell
        monkeypatch.setattr(download, "progress_bar", self.of)

    @contextmanager
    def of(self, phase, total, shown):
        self.phase, self.total = phase, total
        yield self.advance

    def advance(self, work):
        self.done.append(sum(self.done[-1:]) + work)
        self.tell(self.done[-1] / self.total)


def there(cache):
    """The files in the cache, without the lock."""
    return sorted(p.name for p in (cache / "mnist").iterdir() if p.name != ".lock")


def message_of(error, **more):
    with pytest.raises(error, match=r"^[^\n]+$") as caught:
        datasets.load("mnist", **more)
    return str(caught.value)


def test_a_download_is_kept_and_not_repeated(server, grey, cache, monkeypatch):
    bar = Bar(monkeypatch)
    assert datasets.where("mnist").kind == "download"
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])
    assert np.array_equal(images.test_labels, grey["mnist"][0][3])
    assert there(cache) == sorted(ZIPPED)
    assert bar.phase == "download mnist"
    assert bar.done == sorted(bar.done)
    assert bar.done[-1] == bar.total
    assert datasets.where("mnist").kind == "cache"
    requests = list(server.requests)
    assert sorted(requests) == sorted((name, 0) for name in ZIPPED)
    datasets.load("mnist")
    assert server.requests == requests


def test_only_what_is_missing_is_fetched(server, grey, cache):
    zipped = grey["mnist"][2]
    small_sets.write(cache / "mnist", {name: zipped[name] for name in ZIPPED[1:]})
    datasets.load("mnist")
    assert server.requests == [(FIRST, 0)]


def test_the_folder_spares_a_download(server, grey, folder):
    small_sets.write(folder, grey["mnist"][1])
    datasets.load("mnist", folder)
    assert server.requests == []


def test_a_broken_connection_is_taken_up_where_it_broke(server, grey, cache, monkeypatch):
    size = len(server.files[FIRST])
    server.faults[FIRST] = [(1000,), (500,), 503, (2000,)]
    bar = Bar(monkeypatch)
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])
    starts = [start for name, start in server.requests if name == FIRST]
    assert starts == [0, 1000, 1500, 1500, 3500]
    assert size > 3500
    assert bar.done[-1] == bar.total
    assert there(cache) == sorted(ZIPPED)


def test_a_connection_that_keeps_breaking_leaves_a_part_for_the_next_call(server, grey, cache):
    server.faults[FIRST] = [(100,)] * download.TRIES
    message = message_of(ConnectionError)
    assert "mnist was not found in" in message
    assert f"{server.url}{FIRST}: the connection broke after 500 of" in message
    assert "5 times; the next call goes on from there" in message
    assert "name that folder with data=" in message
    assert there(cache) == [f"{FIRST}.part"]
    assert datasets.where("mnist").kind == "download"
    server.requests.clear()
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])
    assert server.requests[0] == (FIRST, 500)
    assert there(cache) == sorted(ZIPPED)


def test_a_server_that_says_nothing_or_hangs_up(server, grey):
    server.faults[FIRST] = ["silence", (1000, "reset"), "silence"]
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])
    assert [start for name, start in server.requests if name == FIRST][:2] == [0, 0]


def test_a_server_without_ranges_starts_again(server, grey):
    server.whole_only = True
    server.faults[FIRST] = [(1000,)]
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])


def test_an_interruption_leaves_a_part_for_the_next_call(server, grey, cache, monkeypatch):
    monkeypatch.setattr(download, "BLOCK", 1000)

    def interrupt(done):
        if done > 0.05:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        Bar(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("mnist")
    (part,) = there(cache)
    arrived = (cache / "mnist" / part).stat().st_size
    assert part == f"{FIRST}.part"
    assert 0 < arrived < len(server.files[FIRST])
    server.requests.clear()
    datasets.load("mnist")
    assert server.requests[0] == (FIRST, arrived)


def test_the_checksum_of_a_download(server, cache):
    server.files[FIRST] = server.files[FIRST][:-1] + b"?"
    message = message_of(ValueError)
    assert f"what {server.url}{FIRST} gave is not the published file (MD5 " in message
    assert "was deleted" in message
    assert there(cache) == []


def test_a_part_of_another_file_is_not_taken_for_data(server, cache):
    """A stale part is completed, does not have the checksum, and is gone: the next call is well."""
    size = len(server.files[FIRST])
    for stale in (size // 2, size, size + 1):
        small_sets.write(cache / "mnist", {f"{FIRST}.part": b"x" * stale})
        assert "is not the published file" in message_of(ValueError)
        assert there(cache) == []
    datasets.load("mnist")


def test_a_page_in_place_of_the_file(server, cache):
    """A log-in page in place of the file, as in hotels: its length is wrong, noticed at once."""
    server.files[FIRST] = b"<html>log in</html>"
    message = message_of(ConnectionError)
    assert "a file of 19 bytes, expected" in message
    assert len(server.requests) == 1
    assert there(cache) == []


def test_a_server_that_has_no_such_file(server, cache):
    server.files.pop(FIRST)
    assert "the server answered 404" in message_of(ConnectionError)
    assert server.requests == [(FIRST, 0)]
    assert there(cache) == []


def test_a_server_in_trouble_is_asked_again(server, cache):
    server.faults[FIRST] = [500] * download.TRIES
    assert "the server answered 500" in message_of(ConnectionError)
    assert len(server.requests) == download.TRIES
    assert there(cache) == []


def test_the_second_server_is_asked_if_the_first_is_silent(server, grey, monkeypatch):
    servers = ("http://127.0.0.1:9/", server.url)
    monkeypatch.setitem(IMAGE_SETS, "mnist", replace(IMAGE_SETS["mnist"], servers=servers))
    images = datasets.load("mnist")
    assert np.array_equal(images.train_images, grey["mnist"][0][0])


def test_offline(grey, monkeypatch, cache):
    servers = ("http://127.0.0.1:9/", "http://127.0.0.1:9/other/")
    monkeypatch.setitem(IMAGE_SETS, "mnist", replace(IMAGE_SETS["mnist"], servers=servers))
    message = message_of(ConnectionError)
    assert f"mnist was not found in {cache / 'mnist'}, and could not be downloaded (" in message
    assert message.count("no connection (") == 2
    assert f"put {', '.join(ZIPPED)} (or mnist in another of its usual forms)" in message
    assert there(cache) == []


def test_a_full_disk(server, cache):
    """/dev/full is a disk that is always full."""
    (cache / "mnist").mkdir(parents=True)
    (cache / "mnist" / f"{FIRST}.part").symlink_to("/dev/full")
    message = message_of(OSError)
    assert f"nothing can be written to the cache {cache / 'mnist'} (No space left on dev" in message
    assert "MB are needed); make room there, or set NNGP_CACHE to another folder" in message
    assert there(cache) == []
    datasets.load("mnist")


def test_the_cache_cannot_be_written(server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("/proc/nngp", str(tmp_path / "file")):
        monkeypatch.setenv("NNGP_CACHE", place)
        assert f"nothing can be written to the cache {place}/mnist (" in message_of(OSError)
    monkeypatch.setenv("NNGP_CACHE", str(tmp_path / "locked"))

    def refuse(*words, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)  # to root everything is allowed
    assert "mnist (Permission denied; " in message_of(PermissionError)
    assert server.requests == []


FETCH = """
import json, sys
from dataclasses import replace
from pathlib import Path
from nngp_paper.datasets.catalogue import MNIST
from nngp_paper.datasets.download import fetch
fields = json.loads(sys.argv[1])
print("ready", flush=True)
input()
fetch(replace(MNIST, **fields), Path(sys.argv[2]))
"""


def test_processes_that_download_at_once_wait_for_each_other(server, cache):
    entry = IMAGE_SETS["mnist"]
    fields = {"servers": [server.url], "downloads": entry.downloads, "md5": entry.md5}
    server.faults[FIRST] = [(1000,)]
    server.delay = 0.2  # seconds before every answer: time enough to get into each other's way
    command = [sys.executable, "-c", FETCH, json.dumps(fields), str(cache / "mnist")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:
        assert [process.stdout.readline() for process in (one, other)] == ["ready\n"] * 2
        for process in (one, other):
            process.stdin.write("\n")
            process.stdin.flush()
    assert (one.returncode, other.returncode) == (0, 0)
    assert sorted(server.requests) == sorted([(FIRST, 1000), *((name, 0) for name in ZIPPED)])
    assert there(cache) == sorted(ZIPPED)


def test_tables_have_no_server(folder):
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("uci/boston", folder)
    assert str(caught.value) == (
        f"uci/boston was not found ({folder / 'uci_regression/boston.npz'} is not there), and "
        "there is no server with published checksums to download it from; put it at "
        "uci_regression/boston.npz in a folder, and name that folder with data= (on the command "
        "line --data) or NNGP_DATA"
    )
    with pytest.raises(FileNotFoundError, match=r"not found \(no folder was named\)"):
        datasets.load("uci_more/bike")
    assert datasets.where("uci_class/iris", folder).kind == "nowhere"
