"""Programs of a device: one for each kind of arguments, with no setting of JAX changed."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from nngp.gram.device import arrays as programs  # noqa: E402


def fresh():
    """A program that this process has not compiled yet."""

    @programs.program
    def scaled(a, factor, *, power):
        return (a * factor) ** power

    return scaled


def call(program):
    """Its result for some arguments."""
    with jax.enable_x64(True):
        return np.asarray(program(np.arange(5.0), 0.1, power=3))


EXPECTED = (np.arange(5.0) * np.float64(0.1)) ** 3


def test_each_kind_of_arguments_is_a_program():
    program = fresh()
    known = len(programs.made)
    with jax.enable_x64(True):
        for size, power in ((3, 1), (3, 1), (4, 1), (3, 2)):
            found = program(np.full(size, 2.0), np.float64(3.0), power=power)
            np.testing.assert_array_equal(found, np.full(size, 6.0**power))
    assert programs.made[known:] == ["scaled"] * 3


def test_a_number_is_an_array_in_double_precision():
    found = call(fresh())
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)


def test_what_is_donated_may_be_used_for_the_result():
    @programs.donating(1)
    def moved(shift, arrays):
        return [one + shift for one in arrays]

    with jax.enable_x64(True):
        given = tuple(jax.device_put(np.full(3, value)) for value in (1.0, 2.0))
        found = moved(0.5, given)
    np.testing.assert_array_equal(np.stack(found), [[1.5] * 3, [2.5] * 3])


def test_an_error_is_raised_by_every_call():
    @programs.program
    def wrong(a):
        raise ZeroDivisionError("in a program")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in a program"):
            wrong(np.zeros(3))


def test_jax_keeps_programs_where_it_is_told_to(tmp_path):
    """As docs/start/costs.md says."""
    from jax.experimental.compilation_cache import compilation_cache

    values = {"compilation_cache_dir": str(tmp_path), "enable_compilation_cache": True}
    values |= {"persistent_cache_min_compile_time_secs": 0}
    values |= {"persistent_cache_min_entry_size_bytes": -1}
    before = {name: getattr(jax.config, f"jax_{name}") for name in values}
    try:
        for name, value in values.items():
            jax.config.update(f"jax_{name}", value)
        compilation_cache.reset_cache()
        np.testing.assert_allclose(call(fresh()), EXPECTED, rtol=1e-15)
        assert list(tmp_path.iterdir())
    finally:
        for name, value in before.items():
            jax.config.update(f"jax_{name}", value)
        compilation_cache.reset_cache()


def test_settings_of_jax_stay_as_they_are():
    names = ("enable_x64", "default_device", "compilation_cache_dir", "enable_compilation_cache")
    before = [getattr(jax.config, f"jax_{name}") for name in names]
    call(fresh())
    assert [getattr(jax.config, f"jax_{name}") for name in names] == before
    assert jax.numpy.ones(3).dtype == np.float32
