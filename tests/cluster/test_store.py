"""Finished tiles outlive everything: client, scheduler, workers."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from clusters import check_same, fit
from damage import bits_of_structure, file_of, flip, mutated, outcome, parts_of, table

import nngp
from nngp.linsolve.engines.dask.tile_store import Token, find_tile, tile_path, write_tile

JOB = """
import sys
import time
from collections import Counter
from pathlib import Path
import numpy as np
import nngp
from clusters import processes

def slow(step):  # once there is something to lose it waits to be killed
    time.sleep(0.03)
    if sum(1 for _ in Path(sys.argv[3]).rglob("*.safetensors")) > 60:
        time.sleep(600)
        sys.exit("nobody killed it")  # the test itself was ended, and this would outlive it

if __name__ == "__main__":
    X, Y = np.load(sys.argv[1]), np.load(sys.argv[2])
    with processes() as client:
        engine = nngp.DaskEngine(client, 150, store=sys.argv[3])
        net = nngp.Architecture(3, "relu", 1.6, 0.1)
        nngp.condition(net, X, Y, noise_var=1e-2, engine=engine, progress=slow)
"""


def tiles(folder):
    """Finished ones: what is being written has a name with a dot in front."""
    return sorted(path for path in folder.rglob("*.safetensors") if not path.name.startswith("."))


def rows(engine):
    """Blocks of the rows of X, which are kept beside the tiles."""
    return len(range(0, 2050, engine.tile_size(2050)))


@pytest.mark.slow
def test_a_job_that_died_altogether_goes_on(client, problem, local, tmp_path):
    """The group of processes is killed when some tiles are there; the rest is done afterwards."""
    for name in ("X", "Y"):
        np.save(tmp_path / f"{name}.npy", getattr(problem, name))
    (tmp_path / "job.py").write_text(JOB)
    store = tmp_path / "store"
    tests = os.path.dirname(os.path.dirname(__file__))
    paths = os.pathsep.join([tests, os.path.join(tests, "oracles"), *sys.path])
    job = subprocess.Popen(
        [sys.executable, tmp_path / "job.py", tmp_path / "X.npy", tmp_path / "Y.npy", store],
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    engine = nngp.DaskEngine(client, 150, store=store)
    while len(tiles(store)) < rows(engine) + 30 and job.poll() is None:
        time.sleep(0.005)
    assert job.poll() is None, "it was done before it could be killed"
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    before = {path: path.stat().st_mtime_ns for path in tiles(store)}

    posterior = fit(problem, engine)
    check_same(posterior, local, problem.Xs)
    assert len(engine.listener.found) >= len(before) - rows(engine) >= 30
    done = set(engine.listener.done)
    assert not done & {path.stem for path in before}  # nothing was computed twice
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())


@pytest.mark.slow
def test_what_is_asked_for_again_is_not_computed_again(client, problem, local, tmp_path):
    fit(problem, nngp.DaskEngine(client, 300, store=tmp_path))
    engine = nngp.DaskEngine(client, 300, store=tmp_path)
    check_same(fit(problem, engine), local, problem.Xs)
    assert len(engine.listener.found) >= rows(engine) * (rows(engine) + 1) // 2


def test_tiles_of_another_job_are_not_taken(client, problem, tmp_path):
    small = problem._replace(X=problem.X[:300], Y=problem.Y[:300])
    fit(small, nngp.DaskEngine(client, 100, store=tmp_path))
    X = small.X.copy()
    X[0] = X[0][::-1]  # the same norm; a row of the first block, which all tiles need
    others = [
        (small._replace(noise=1.1e-2), {}),
        (small._replace(net=nngp.Architecture(3, "relu", 1.6, 0.1 + 1e-12)), {}),
        (small._replace(X=X), {}),
        (small, {"tile": 50}),
        (small, {"dtype": "float32"}),
    ]
    for other, options in others:
        engine = nngp.DaskEngine(client, **{"tile": 100, **options}, store=tmp_path)
        fit(other, engine)
        assert len(engine.listener.done) >= 6
        assert not engine.listener.found


@pytest.mark.slow
def test_a_damaged_tile_is_computed_again(client, problem, local, tmp_path):
    fit(problem, nngp.DaskEngine(client, 300, store=tmp_path))
    largest = sorted(tiles(tmp_path), key=lambda path: path.stat().st_size)[-3:]
    largest[0].write_bytes(largest[0].read_bytes()[:-500])
    damaged = bytearray(largest[1].read_bytes())
    damaged[len(damaged) // 2] ^= 255
    largest[1].write_bytes(damaged)
    largest[2].write_bytes(b"")
    engine = nngp.DaskEngine(client, 300, store=tmp_path)
    check_same(fit(problem, engine), local, problem.Xs)
    assert {path.stem for path in largest} <= set(engine.listener.done)


def test_a_tile_is_there_as_a_whole_or_not_at_all(tmp_path):
    assert find_tile(str(tmp_path), "abc") is None
    write_tile(str(tmp_path), "abc", np.eye(3))
    assert np.array_equal(find_tile(str(tmp_path), "abc").read(), np.eye(3))
    tile_path(tmp_path, "abc").write_bytes(b"\x08")
    assert find_tile(str(tmp_path), "abc") is None
    assert not tile_path(tmp_path, "abc").exists()


class StoredTile:
    """A tile in a store, and what becomes of a damaged file in its place."""

    def __init__(self, folder, size):
        self.folder, self.tile = str(folder), np.random.default_rng(0).normal(size=(size, size))
        write_tile(self.folder, "abc", self.tile, {"kernel": "k", "nearest": 0.5})
        self.path = tile_path(folder, "abc")
        self.whole = self.path.read_bytes()

    def judge(self, data, same=None):
        self.path.write_bytes(data)
        found = outcome(
            Token(self.folder, "abc").read, nngp.errors.TileStoreError, same or self.is_same
        )
        token = find_tile(self.folder, "abc")
        assert (token is not None) == (found == "same")
        assert self.path.exists() == (found == "same")
        return found

    def is_same(self, found):
        return np.array_equal(found, self.tile) and found.dtype == self.tile.dtype


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.deep)])
def test_bits_of_a_tiles_headers(tmp_path, step, capsys):
    stored, counts = StoredTile(tmp_path, 4), {}
    for kind, bits in bits_of_structure(stored.whole).items():
        counts[kind] = Counter(stored.judge(flip(stored.whole, bit)) for bit in bits[::step])
    if step == 1:
        with capsys.disabled():
            print("\n" + table("Single bits of a tile's headers, flipped", counts))
    assert all(set(found) <= {"refused", "same"} for found in counts.values())


@pytest.mark.parametrize("number", [200, pytest.param(5000, marks=pytest.mark.deep)])
def test_random_mutations_of_a_tile(tmp_path, number, capsys):
    stored, rng, counts = StoredTile(tmp_path, 100), np.random.default_rng(0), {}
    for _ in range(number):
        kind, data = mutated(stored.whole, rng)
        counts.setdefault(kind, Counter())[stored.judge(data)] += 1
    if number > 1000:
        with capsys.disabled():
            print("\n" + table("Random mutations of a tile", counts))
    assert all(set(found) <= {"refused", "same"} for found in counts.values())
    assert sum(found["refused"] for found in counts.values()) > 0.8 * number


def test_tiles_that_changed_places(tmp_path):
    """Both files are whole: only the name in them tells."""
    for name in ("abc", "abd"):
        write_tile(str(tmp_path), name, np.full((3, 3), float(ord(name[-1]))))
    first, second = (tile_path(tmp_path, name) for name in ("abc", "abd"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(nngp.errors.TileStoreError, match="it is another tile"):
        Token(str(tmp_path), "abc").read()
    assert find_tile(str(tmp_path), "abd") is None


def test_forged_tiles(tmp_path):
    """Right digests, wrong contents."""
    stored = StoredTile(tmp_path, 4)
    facts, arrays = parts_of(stored.whole)
    assert stored.judge(file_of(facts, arrays)) == "same"
    assert stored.judge(file_of(facts, {"tile": np.full((4, 4), np.nan)})) == "refused"
    assert stored.judge(file_of(facts, {"other": arrays["tile"]})) == "refused"
    assert stored.judge(file_of(facts, arrays | {"more": np.eye(2)})) == "refused"
    for text in ("", "[" * 9000, "{'kernel': NaN}"):
        assert stored.judge(file_of(facts | {"notes": text}, arrays)) == "refused"
    for name in facts:
        others = {key: text for key, text in facts.items() if key != name}
        assert stored.judge(file_of(others, arrays)) == "refused", name

    def huge(header):
        header["tile"]["shape"] = [400_000, 400_000]

    assert stored.judge(file_of(facts, arrays, huge)) == "refused"


@pytest.mark.slow
def test_predictions_leave_no_files(client, problem, tmp_path):
    posterior = fit(problem, nngp.DaskEngine(client, 700, store=tmp_path))
    before = tiles(tmp_path)
    posterior.predict(problem.Xs)
    posterior.mean(2 * problem.Xs[:7])
    assert tiles(tmp_path) == before


def test_a_store_that_workers_do_not_see(client, problem, tmp_path, monkeypatch):
    monkeypatch.setattr("nngp.linsolve.engines.dask.dask_engine.write_tile", elsewhere)
    with pytest.raises(ValueError, match="use a folder that all share, or save X"):
        fit(problem, nngp.DaskEngine(client, 700, store=tmp_path))


def elsewhere(folder, name, tile):
    """As if this machine had another folder of that name."""
    write_tile(folder + "-here", name, tile)
    return Token(folder, name)


def test_a_store_that_is_a_file_is_refused(client, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="no folder that can be used"):
        nngp.DaskEngine(client, store=tmp_path / "file")
