"""Blocks of the kernel matrix on the workers of a Dask cluster."""
