"""Cholesky factorisation by tiles."""
