"""Finite networks beside the infinite one (extra `finite`): draws from the prior, convergence with
width, training, and the paper's random search. Needs JAX and optax, loaded on use."""
