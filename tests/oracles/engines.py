"""The engines in small tiles, so that small problems have many."""

import pytest

from nngp.linsolve import CpuEngine


class SmallTiles(CpuEngine):
    def tile_size(self, n):
        return 7

    def rows_at_a_time(self, n):
        return 5


def jax_engine():
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    class SmallJaxTiles(GpuEngine):
        def rows_at_a_time(self, n):
            return 5

    return SmallJaxTiles(jax.devices()[0], tile=7)
