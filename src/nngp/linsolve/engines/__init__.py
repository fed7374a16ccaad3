"""Engines, which store tiles and compute chains of them: cpu, gpu, dask."""
