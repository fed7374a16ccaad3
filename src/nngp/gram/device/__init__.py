"""Blocks of the kernel matrix on an accelerator, through JAX."""
