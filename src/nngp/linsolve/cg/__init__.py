"""Preconditioned conjugate gradients."""
