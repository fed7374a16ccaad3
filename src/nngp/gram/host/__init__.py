"""Blocks of the kernel matrix in host memory."""
