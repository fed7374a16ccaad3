"""Keys: equal configurations have equal keys, different ones different keys, on every platform."""

import hashlib
import json
import math
from enum import Enum, StrEnum

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nngp_paper.runs import key_of
from nngp_paper.runs.key import canonical, plain

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), st.none()
)
VALUES = st.recursive(
    NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
CONFIGS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def test_the_text_that_is_hashed():
    config = {"b": (1, 2.5, -0.0), "a": {"é": None, "t": True}, "depth": math.inf, "low": -math.inf}
    text = r'["width",{"a":{"t":true,"\u00e9":null},"b":[1,2.5,0],"depth":"inf","low":"-inf"}]'
    assert key_of("width", config) == hashlib.sha256(text.encode()).hexdigest()


def test_a_key_of_long_ago_is_the_key_of_today():
    key = key_of("width", {"width": 512, "weight_var": 1.6, "activation": "relu"})
    assert key == "5f57122a3e8c7717c458f4ae1dd053d602f08904bb3da5a64ec212619b058c5f"


@settings(max_examples=50, deadline=None)
@given(CONFIGS)
def test_order_of_names_does_not_matter_and_a_stored_config_keeps_its_key(config):
    again = json.loads(json.dumps(plain(config, "config")))
    backwards = dict(reversed(list(config.items())))
    assert key_of("e", config) == key_of("e", backwards) == key_of("e", again)


def same(a, b):
    """Equality as the keys promise it, written down independently: by types and Python's ==."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isinf(a):
        a = str(a)
    if isinstance(b, float) and math.isinf(b):
        b = str(b)
    return a == b


@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES, min_size=2, max_size=6))
def test_keys_are_equal_exactly_where_configurations_are(values):
    for a in values:
        for b in values:
            assert (key_of("e", {"v": a}) == key_of("e", {"v": b})) == same(a, b)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (2**60, float(2**60)),
        (0.1, np.float64(0.1)),
        (3, np.int64(3)),
        (True, np.bool_(True)),
        ([1, 2], (1, 2)),
        ([[1.5, 2]], np.array([[1.5, 2.0]])),
        (float(np.float32(0.1)), np.float32(0.1)),
        ("relu", np.str_("relu")),
        (math.inf, "inf"),
    ],
)
def test_one_configuration_in_two_writings(one, other):
    assert key_of("e", {"v": one}) == key_of("e", {"v": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, None), (1, "1"), (0.1, np.float32(0.1)), ([1], 1), ({}, []), (1, 1 + 2**-52)],
)
def test_two_configurations(one, other):
    assert key_of("e", {"v": one}) != key_of("e", {"v": other})


def test_the_experiment_is_part_of_the_key():
    assert key_of("a", {"v": 1}) != key_of("b", {"v": 1})


def test_enums_are_their_values():
    class Old(str, Enum):  # noqa: UP042 - the older way to write it
        relu = "r"

    class New(StrEnum):
        relu = "r"

    assert key_of("e", {"v": Old.relu}) == key_of("e", {"v": New.relu}) == key_of("e", {"v": "r"})


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (math.nan, ValueError, r"config\.net\.v is NaN"),
        ([1, np.float32("nan")], ValueError, r"config\.net\.v is NaN"),
        ({1, 2}, TypeError, "config cannot be stored .there is a set in it"),
        (b"x", TypeError, "there is a bytes in it"),
        (1j, TypeError, "there is a complex in it"),
        (np.complex128(1j), TypeError, "there is a complex in it"),
        (object(), TypeError, "there is a object in it"),
    ],
)
def test_what_cannot_be_a_configuration(value, error, sentence):
    with pytest.raises(error, match=sentence):
        key_of("e", {"net": {"v": value}})


def test_values_in_terms_of_python():
    given_ = {"a": np.arange(3), "b": (np.float64(1.5), np.bool_(True)), "c": np.array(2)}
    found = plain(given_, "x")
    assert found == {"a": [0, 1, 2], "b": [1.5, True], "c": 2}
    assert [type(part) for part in found["b"]] == [float, bool]
    assert canonical(found, "x") == '{"a":[0,1,2],"b":[1.5,true],"c":2}'
