"""The commit that runs are stored with: that of the checkout, or what a variable says."""

import shutil
import subprocess
from pathlib import Path

import pytest

import nngp_paper
from nngp_paper.runs import RunStore, as_row
from nngp_paper.runs.versions import commit_of, current_commit

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


@pytest.fixture
def checkout(tmp_path):
    """A folder with one commit, and a function that calls git in it."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")

    def git(*words):
        command = ["git", "-C", str(tmp_path), *IDENTITY, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return tmp_path, git


@pytest.fixture
def anew():
    """The commit is found once a process: forget it, before and after."""
    current_commit.cache_clear()
    yield
    current_commit.cache_clear()


def test_the_commit_is_what_git_says(checkout):
    folder, git = checkout
    first = git("rev-parse", "HEAD")
    assert commit_of(folder) == first
    (folder / "notes.txt").write_text("no code\n")
    (folder / "src" / "code.pyc").write_text("made of it\n")
    assert commit_of(folder) == first
    git("commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(folder) == git("rev-parse", "HEAD") != first


@pytest.mark.parametrize("name", ["code.py", "new.py"])
def test_changed_code_is_marked(checkout, name):
    folder, git = checkout
    (folder / "src" / name).write_text("x = 2\n")
    assert commit_of(folder) == git("rev-parse", "HEAD") + "-dirty"


def test_what_is_no_checkout_has_none(checkout, tmp_path, monkeypatch):
    folder, _ = checkout
    assert commit_of(folder / "src") is None  # inside one: an installed package may lie there
    monkeypatch.setenv("PATH", "")
    assert commit_of(folder) is None


def test_nothing_committed_yet(checkout):
    folder, git = checkout
    git("update-ref", "-d", "HEAD")
    assert commit_of(folder) is None


def test_a_run_has_the_commit_that_the_variable_tells(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("NNGP_COMMIT", " 0123abc ")
    with RunStore(tmp_path / "runs.db") as store:
        first, second = store.declare("e", [{"a": 1}, {"a": 2}])
        store.claim()
        monkeypatch.setenv("NNGP_COMMIT", "later")  # checked out while the run was in progress
        store.finish(first, {}, seconds=1.0)
        store.fail(second, "out of memory")
        assert [run.versions["commit"] for run in store.runs()] == ["0123abc"] * 2
        assert as_row(store.get(first))["versions"]["commit"] == "0123abc"


def test_without_a_commit_there_is_no_word_of_one(anew, monkeypatch, tmp_path):
    monkeypatch.delenv("NNGP_COMMIT", raising=False)
    monkeypatch.setattr("nngp_paper.runs.versions.commit_of", lambda folder: None)
    with RunStore(tmp_path / "runs.db") as store:
        (key,) = store.declare("e", [{"a": 1}])
        store.finish(key, {}, seconds=1.0)
        assert "commit" not in store.get(key).versions


def test_this_checkout(anew, monkeypatch, request):
    root = request.config.rootpath.parent
    inside = Path(nngp_paper.__file__).is_relative_to(root / "reproduction" / "src")
    if not inside or not (root / ".git").exists() or shutil.which("git") is None:
        pytest.skip("the package lies in no checkout")
    monkeypatch.delenv("NNGP_COMMIT", raising=False)
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    head = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert current_commit() in (head, f"{head}-dirty")
