"""Engines: where tiles are stored and who computes them (cpu, gpu, dask)."""
