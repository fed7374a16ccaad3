"""docs/guides/cluster.md is tried here: its commands as programs, its code as scripts."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

import nngp

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "cluster.md").read_text()
TRIED = PAGE[: PAGE.index("All blocks up to here")]


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", TRIED, flags=re.DOTALL)


@contextmanager
def program(line, **environment):
    """A command of Dask's, as the page has it, in a process that does not outlive the test."""
    words = line.split()
    while "=" in words[0]:
        name, value = words.pop(0).split("=")
        environment[name] = value
    assert words.pop(0) == "dask"
    started = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, 9)
            started.wait()


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """The page's scheduler and workers on this machine; gives the address."""
    folder = tmp_path_factory.mktemp("head")
    scheduler, worker = blocks("console")[0].splitlines()
    file = folder / "scheduler.json"
    more = f"--host 127.0.0.1 --no-dashboard --scheduler-file {file}"
    with ExitStack() as stack:
        started = stack.enter_context(program(f"{scheduler.replace('8786', '0')} {more}"))
        address = json.loads(appeared(file, started))["address"]
        line = worker.replace("tcp://head:8786", address).replace("/local/scratch", str(folder))
        stack.enter_context(program(f"{line} --no-dashboard"))
        yield address


def appeared(file, started):
    """The text of a file that a program writes."""
    for _ in range(600):
        assert started.poll() is None, "the scheduler ended"
        if file.exists() and file.read_text().endswith("}"):
            return file.read_text()
        time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


@pytest.fixture
def shared(tmp_path):
    rng = np.random.default_rng(0)
    X, Xs = (nngp.normalize(rng.normal(size=(m, 6))) for m in (600, 20))
    y = np.sin(3 * X[:, 0]) + 0.1 * X[:, 1]
    for name, array in {"X": X, "y": y, "Xs": Xs}.items():
        np.save(tmp_path / f"{name}.npy", array)
    return X, y, Xs


@pytest.mark.slow
def test_scheduler_and_workers_by_hand(head, shared, tmp_path):
    code = blocks("python")[0].replace("tcp://head:8786", head).replace("/shared", str(tmp_path))
    found: dict = {}
    exec(code, found)
    assert found["engine"].store == str(tmp_path / "job42")
    assert list((tmp_path / "job42").rglob("*.safetensors"))
    local = nngp.condition(found["net"], *shared[:2], noise_var=1e-2, engine="cpu")
    mean, variance = local.predict(shared[2])
    np.testing.assert_allclose(found["mean"], mean, atol=1e-11)
    np.testing.assert_allclose(found["variance"], variance, atol=1e-12)


@pytest.mark.slow
def test_the_commands(head, shared, run, tmp_path, monkeypatch):
    pl = pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    X, y, Xs = shared
    names = [f"x{j}" for j in range(X.shape[1])]
    pl.DataFrame(X, schema=names).with_columns(y=pl.Series(y)).write_csv("train.csv")
    pl.DataFrame(Xs, schema=names).write_csv("new.csv")
    lines = blocks("console")[1].splitlines()
    assert [line.split()[1] for line in lines] == ["fit", "predict", "reproduce"]
    for line in lines[:2]:  # the third is tested with the paper's reproduction
        line = line.replace("tcp://head:8786", head).replace("/shared", str(tmp_path))
        if " fit " in line:  # the choice of a network is tested elsewhere
            line += " --selection none --noise-var 0.01"
        code, _, err = run(line.removeprefix("nngp "))
        assert code == 0, err
    assert list((tmp_path / "job43").rglob("*.safetensors"))
    run("fit train.csv --target y -o here.nngp --selection none --noise-var 0.01 --engine cpu")
    run("predict here.nngp new.csv -o here.csv --engine cpu")
    ours, theirs = (pl.read_csv(f"{name}.csv").to_numpy() for name in ("predictions", "here"))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    assert run(f"evaluate model.nngp train.csv --cluster {head} --json")[0] == 0


@pytest.mark.slow
def test_a_scheduler_that_stops_answering(shared, tmp_path, monkeypatch):
    """It is stopped, as if its machine were overloaded: connections stay, and nobody answers."""
    from nngp.linsolve.engines.dask import client as cluster_client

    monkeypatch.setattr(cluster_client, "ANSWER", 0.5)
    file, more = tmp_path / "scheduler.json", "--host 127.0.0.1 --no-dashboard"
    with ExitStack() as stack:
        line = f"dask scheduler --port 0 {more} --scheduler-file {file}"
        scheduler = stack.enter_context(program(line))
        address = json.loads(appeared(file, scheduler))["address"]
        stack.enter_context(program(f"dask worker {address} --nthreads 1 {more}"))
        engine = stack.enter_context(nngp.DaskEngine(address, 50, patience=1.0))
        engine.client.wait_for_workers(1, timeout=60)
        stack.callback(os.kill, scheduler.pid, signal.SIGCONT)

        def stop(step):
            if engine.listener.done:
                os.kill(scheduler.pid, signal.SIGSTOP)

        X, y, _ = shared
        with pytest.raises(nngp.errors.ClusterError, match="its scheduler has not answered"):
            nngp.condition(nngp.Architecture(2), X, y, engine=engine, progress=stop)


@pytest.mark.slow
def test_a_cluster_in_three_lines(tmp_path):
    """The block that the site's build runs in a notebook, as a script."""
    (tmp_path / "script.py").write_text(blocks(r"\{code-cell\}")[0])
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split("\n")[0] == "dask 2", done.stderr
    assert "[" in done.stdout  # the means


def test_other_blocks_are_python_at_least():
    for code in re.findall(r"```(?:python|\{code-cell\})\n(.*?)```", PAGE, flags=re.DOTALL):
        compile(code, "docs/guides/cluster.md", "exec")


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("--cluster tcp://127.0.0.1:9", 4, "no Dask scheduler at tcp://127.0.0.1:9"),
        ("--cluster tcp://127.0.0.1:9 --engine gpu", 2, "contradict"),
        ("--tile 100", 2, "add --cluster"),
        ("--tile-store tiles", 2, "add --cluster"),
    ],
)
def test_what_cannot_be(run, tmp_path, monkeypatch, options, code, sentence):
    from nngp.linsolve.engines.dask import client as cluster_client

    monkeypatch.setattr(cluster_client, "CONNECT", 0.5)
    (tmp_path / "train.csv").write_text("a,y\n1,2\n2,3\n")
    found, _, err = run(f"fit train.csv --target y {options}")
    assert found == code
    assert sentence in err


@pytest.mark.parametrize("command", ["predict m.nngp t.csv", "evaluate m.nngp t.csv"])
def test_no_scheduler_no_dask(run, monkeypatch, command):
    from nngp.linsolve.engines.dask import client as cluster_client

    pytest.importorskip("matplotlib")
    monkeypatch.setattr(cluster_client, "CONNECT", 0.5)
    code, _, err = run(f"{command} --cluster tcp://127.0.0.1:9")
    assert (code, "start one with 'dask scheduler'" in err) == (4, True)
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run(f"{command} --cluster tcp://127.0.0.1:9")
    assert (code, "pip install 'nngp[distributed]'" in err) == (4, True)
