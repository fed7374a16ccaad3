"""The paper's noise ladder (sec. 3.1): times ten whenever the Cholesky factorisation fails.

Where rows have noise of their own, what climbs is the least that every row has.
"""

from collections.abc import Callable
from typing import TypeVar

from nngp.errors import NotPositiveDefiniteError

LIMIT = 0.2  # the authors' code gives up past this
START = 1e-10  # where the ladder goes from noise_var=0
Result = TypeVar("Result")


def next_noise(noise_var: float) -> float:
    """The next noise to try: ten times as much."""
    return noise_var * 10 if noise_var > 0 else START


def climb(
    attempt: Callable[[float], Result], noise_var: float, limit: float = LIMIT
) -> tuple[Result, float, int]:
    """attempt(noise_var), with ten times the noise after each failure, up to `limit`.

    Gives the result, the noise it took, and how many attempts failed.
    """
    noise, failed = noise_var, 0
    while True:
        try:
            return attempt(noise), noise, failed
        except NotPositiveDefiniteError as error:
            failed += 1
            if not next_noise(noise) <= limit:
                error.noise_var, error.failed_attempts = noise, failed
                raise
            noise = next_noise(noise)
