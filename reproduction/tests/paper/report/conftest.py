"""A store in which everything has been measured on MNIST, and little on digits; the page made from
it; and a browser, where there is one."""

import shutil
import subprocess

import pytest
from paper_runs import (
    MNIST,
    UNCERTAINTY,
    fill,
    fill_grids,
    fill_searches,
    fill_settings,
    fill_small_studies,
)

from nngp_paper.runs import RunStore


@pytest.fixture(scope="session")
def paper_store(tmp_path_factory):
    """All of MNIST; of digits, one failed grid strip and the uncertainty of one size."""
    path = tmp_path_factory.mktemp("paper") / "runs.db"
    with RunStore(path) as store:
        fill_grids(store)
        fill_settings(store)
        fill_small_studies(store, MNIST)
        fill_searches(store)
        digits = {"dataset": "digits", "train": 100, "activation": "relu", "depth": 1}
        (key,) = store.declare("grid", [{**digits, "bias_vars": [0.0], "weight_var": 1.0}])
        store.fail(key, "there is no such kernel", 1.0)
        network = {"weight_var": 2.0, "bias_var": 0.2, "test": 500, "bin": 20}
        fill(
            store,
            "doubt",
            [{**digits, "depth": 3, **network}],
            lambda c: {"predicted": [0.1, 0.2], "realised": [0.1, 0.2], **UNCERTAINTY},
        )
    return path


@pytest.fixture(scope="session")
def page(paper_store, tmp_path_factory):
    """The report as a file."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("jax")
    from nngp_paper.report import write_report

    path = tmp_path_factory.mktemp("page") / "report.html"
    with RunStore(paper_store) as store:
        write_report(store, path)
    return path


@pytest.fixture(scope="session")
def browser():
    """A function: run headless Chromium on a page with some options; gives stdout and stderr."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium here to look at the page with")

    def look(folder, *options, page):
        profile = folder / "profile"
        profile.mkdir()
        quiet = "headless no-sandbox disable-gpu no-first-run disable-sync disable-extensions"
        quiet += " disable-background-networking disable-component-update disable-dev-shm-usage"
        words = [f"--{word}" for word in quiet.split()]
        return subprocess.run(
            [found, *words, f"--user-data-dir={profile}", *options, page.as_uri()],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    return look
