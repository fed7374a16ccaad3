"""An empty store."""

import pytest

from nngp.runs import RunStore


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        yield store
