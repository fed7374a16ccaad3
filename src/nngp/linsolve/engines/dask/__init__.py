"""The Dask engine: tiles on the workers of a cluster."""
