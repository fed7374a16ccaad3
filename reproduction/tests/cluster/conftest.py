"""A cluster of two processes."""

import pytest
from clusters import processes

pytest.importorskip("distributed", reason="a cluster needs nngp[distributed]")


@pytest.fixture(scope="session")
def client():
    with processes() as client:
        yield client
