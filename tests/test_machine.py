"""The limit of one BLAS thread, and what control groups allow."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import nngp
from nngp import _machine
from nngp._machine import single_threaded_blas

NET = nngp.Architecture(1, "relu", 1.6, 0.1)


@pytest.fixture
def counts():
    """The threads of each BLAS, which are two at first, as set by the user."""
    libraries = ThreadpoolController().select(user_api="blas")

    def now():
        return {one.get_num_threads() for one in libraries.lib_controllers}

    with libraries.limit(limits=2):
        if now() != {2}:
            pytest.skip("this BLAS has no threads")
        yield now
        assert now() == {2}


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_limit_holds_from_any_thread_and_is_undone(counts):
    def limited():
        with single_threaded_blas():
            with single_threaded_blas():
                pass
            return counts()

    assert limited() == {1}
    assert counts() == {2}
    assert in_thread(limited) == {1}
    assert counts() == {2}


def test_the_last_of_several_users_undoes_the_limit(counts):
    inside, leave = threading.Event(), threading.Event()

    def first():
        with single_threaded_blas():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(60)
    with single_threaded_blas():
        leave.set()
        thread.join()
        assert counts() == {1}  # the one who made the setting has left
    assert counts() == {2}


def test_an_error_undoes_the_limit(counts):
    with pytest.raises(ValueError, match="nobody"), single_threaded_blas():
        raise ValueError("nobody catches this")


@pytest.mark.parametrize("call", [lambda f: f(), in_thread], ids=["main", "other"])
def test_public_computations_are_limited(counts, call, monkeypatch):
    seen = []
    original = _machine.threads
    monkeypatch.setattr("nngp._machine.threads", lambda: seen.append(counts()) or original())
    X = np.random.default_rng(0).normal(size=(30, 2))
    call(lambda: nngp.condition(NET, X, X[:, :1], noise_var=0.1).predict(X))
    assert seen
    assert seen == [{1}] * len(seen)


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.fixture
def groups(tmp_path, monkeypatch):
    monkeypatch.setattr(_machine, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(_machine, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    seconds = itertools.count(0.0)  # one passes between two calls
    monkeypatch.setattr(_machine.time, "monotonic", lambda: next(seconds))
    _machine._quotas_at.cache_clear()
    yield tmp_path
    _machine._quotas_at.cache_clear()


@pytest.mark.parametrize("where", ["a/b", "a", ""])
def test_quota_of_version_2(groups, where):
    quotas = {"max 100000": 8, "250000 100000": 3, "1000 100000": 1, "9900000 100000": 8}
    for quota, expected in quotas.items():
        (groups / "own").write_text("0::/a/b\n")
        group(groups / where, cpu__max=quota)
        assert _machine.threads() == expected


@pytest.mark.parametrize("where", ["cpu,cpuacct/a", "cpu/a", "cpu"])
def test_quota_of_version_1(groups, where):
    for quota, expected in (("-1", 8), ("150000", 2)):
        (groups / "own").write_text("4:memory:/m\n3:cpu,cpuacct:/a\n0::/\n")
        group(groups / where, cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
        assert _machine.threads() == expected


def test_a_quota_is_read_again_after_a_second(groups, monkeypatch):
    now = [100.2]
    monkeypatch.setattr(_machine.time, "monotonic", lambda: now[0])
    (groups / "own").write_text("0::/\n")
    found = []
    for seconds, quota in ((100.2, "200000"), (100.7, "300000"), (101.3, "300000")):
        now[0] = seconds
        group(groups, cpu__max=f"{quota} 100000")
        found.append(_machine.threads())
    assert found == [2, 2, 3]


def test_without_control_groups(groups):
    assert _machine.threads() == 8
    assert list(_machine._free_in_containers()) == []


def test_memory_of_control_groups(groups):
    (groups / "own").write_text("4:memory:/m\n0::/a\n")
    group(groups / "a", memory__max="max", memory__current="5")
    group(groups, memory__max="1000", memory__current="400", memory__stat="inactive_file 100\n")
    old = {"memory__limit_in_bytes": "900", "memory__usage_in_bytes": "500"}
    group(groups / "memory/m", **old, memory__stat="total_inactive_file 50\n")
    assert list(_machine._free_in_containers()) == [450, 700]


def test_one_thread_computes_in_the_calling_thread():
    import threading

    import numpy as np

    import nngp
    from nngp._machine import one_thread, threads

    X = np.random.default_rng(0).normal(size=(300, 3))
    net, begun = nngp.Architecture(2, "erf", 2.0, 0.3), []
    with_threads = nngp.condition(net, X, X[:, 0], noise_var=0.1, engine="cpu").predict(X)
    start = threading.Thread.start
    threading.Thread.start = lambda self: (begun.append(self), start(self))[1]
    try:
        with one_thread():
            assert threads() == 1
            alone = nngp.condition(net, X, X[:, 0], noise_var=0.1, engine="cpu").predict(X)
    finally:
        threading.Thread.start = start
    assert begun == []
    for one, other in zip(with_threads, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_failed_job_of_the_calling_thread_frees_its_arrays():
    """Without the cyclic collector: its error must not hold the frame that holds the future."""
    import gc
    import weakref

    from nngp.linsolve.engines.cpu import _CallingThread

    class Tiles:
        pass

    def fail(tiles):
        raise ValueError("not positive definite")

    def run():
        tiles = Tiles()
        assert _CallingThread().submit(fail, tiles).exception() is not None
        return weakref.ref(tiles)

    gc.disable()
    try:
        assert run()() is None
    finally:
        gc.enable()
