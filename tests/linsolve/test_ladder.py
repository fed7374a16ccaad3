"""The noise ladder: times ten on failure, up to a limit."""

import pytest

from nngp.errors import NotPositiveDefiniteError
from nngp.linsolve import LIMIT, climb


def needs(level):
    tried = []

    def attempt(noise):
        tried.append(noise)
        if noise < level:
            raise NotPositiveDefiniteError
        return noise

    return attempt, tried


def test_the_first_attempt_uses_what_was_asked():
    attempt, tried = needs(0.0)
    assert climb(attempt, 1e-10) == (1e-10, 1e-10, 0)
    assert tried == [1e-10]


def test_times_ten_until_it_works():
    attempt, _ = needs(1e-7)
    result, noise, failed = climb(attempt, 1e-10)
    assert result == noise == pytest.approx(1e-7)
    assert failed == 3


def test_zero_noise_has_a_first_step():
    attempt, tried = needs(1e-9)
    climb(attempt, 0.0)
    assert tried == [0.0, 1e-10, pytest.approx(1e-9)]


def test_the_limit():
    attempt, tried = needs(1e9)
    with pytest.raises(NotPositiveDefiniteError):
        climb(attempt, 1e-10)
    assert max(tried) <= LIMIT < 10 * max(tried)


def test_noise_above_the_limit_is_tried_once():
    attempt, tried = needs(1e9)
    with pytest.raises(NotPositiveDefiniteError):
        climb(attempt, 1.0)
    assert tried == [1.0]
