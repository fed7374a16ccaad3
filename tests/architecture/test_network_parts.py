"""Networks of parts are frozen, hashable values that JSON can hold; what is none is refused."""

import json
import pickle

import pytest

import nngp
from nngp import (
    NTK,
    Act,
    Architecture,
    Chain,
    Concat,
    Dense,
    Dropout,
    LayerNorm,
    Product,
    Repeat,
    Residual,
    Sum,
)

GATED = Product(Chain(Dense(1.2, 0.1), Act("gelu")), Dense(0.9, 0.3))
NETWORKS = {
    "dense": Dense(1.5, 0.25),
    "chain": Chain(Dense(1.6, 0.1), Act("relu"), Dense(2.0)),
    "leaky_relu": Chain(Dense(1.6, 0.1), Act(nngp.activations.leaky_relu(0.3)), Dense(2.0)),
    "residual": Chain(Dense(1.0), Repeat(Residual(Act("erf"), Dense(0.1)), 7)),
    "layer_norm": Chain(Dense(3.0), LayerNorm(), Act("tanh"), Dense(1.0)),
    "dropout": Chain(Dropout(0.8), Dense(3.0), Act("tanh"), Dropout(0.5), Dense(1.0)),
    "sum": Sum(Dense(1.0, 0.1), Chain(Dense(1.0), Act("sin"), Dense(2.0))),
    "product": Chain(GATED, Dense(1.0)),
    "concat": Chain(Concat(Dense(1.0), GATED, shares=(0.25, 0.75)), Dense(1.0)),
    "equal shares": Chain(Concat(Dense(1.0), Dense(2.0), Dense(3.0)), Dense(1.0)),
    "nested": Repeat(Chain(Sum(Residual(Dense(1.0)), Dense(0.5)), Dense(1.0)), 3),
    "architecture": Architecture(3, "relu", (1.0, 1.1, 1.2, 1.3), 0.1),
    "infinite": Architecture(float("inf"), "relu", 1.0, 0.1),
    "tangent": NTK(Chain(Dense(1.6, 0.1), Act("relu"), Dense(2.0))),
    "tangent of architecture": NTK(Architecture(2, "erf", 1.5, 0.1)),
}


def test_json_and_pickle_give_it_back():
    for net in NETWORKS.values():
        again = nngp.Network.from_dict(json.loads(json.dumps(net.as_dict())))
        for copy in (again, pickle.loads(pickle.dumps(net))):
            assert copy == net
            assert hash(copy) == hash(net)
            assert type(copy) is type(net)
            assert repr(copy) == repr(net)


def test_different_networks_differ():
    assert len({*NETWORKS.values()}) == len(NETWORKS)
    assert Chain(Dense(1.0), Dense(2.0)) != Chain(Dense(2.0), Dense(1.0))
    assert Sum(Dense(1.0), Dense(2.0)) != Product(Dense(1.0), Dense(2.0))
    assert Residual(Dense(1.0)) != Chain(Dense(1.0))
    assert NTK(Dense(1.0)) != Dense(1.0)
    branches = Dense(1.0), Dense(2.0)
    assert Concat(*branches) == Concat(*branches, shares=(0.5, 0.5))
    assert Concat(*branches) != Concat(*branches, shares=(0.25, 0.75))


FROZEN = [
    (Dense(1.0), "weight_var"),
    (Act("relu"), "activation"),
    (Dropout(0.5), "keep"),
    (Chain(Dense(1.0)), "parts"),
    (Residual(Dense(1.0)), "parts"),
    (Sum(Dense(1.0)), "branches"),
    (Concat(Dense(1.0)), "shares"),
    (Repeat(Dense(1.0), 2), "times"),
    (NTK(Dense(1.0)), "network"),
]


def test_it_is_frozen():
    for net, field in FROZEN:
        with pytest.raises(AttributeError):
            setattr(net, field, None)


def test_variances_are_listed_in_the_order_of_computation():
    inside = Sum(Chain(Dense(2.0, 0.2), Act("relu"), Dense(3.0, 0.3)), Dense(4.0, 0.4))
    net = Chain(Dense(1.0, 0.1), Repeat(Residual(Act("erf"), inside), 2), Dense(5.0))
    assert net.weight_vars == (1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0)
    assert net.bias_vars == (0.1, 0.2, 0.3, 0.4, 0.2, 0.3, 0.4, 0.0)
    assert [phi.name for phi in net.activations] == ["erf", "relu"]
    assert net.depth == 4
    assert NTK(net).weight_vars == net.weight_vars
    assert NTK(net).depth == net.depth


def test_the_longest_way_is_the_depth():
    deep = Chain(Repeat(Chain(Dense(1.0), Act("relu")), 3), Dense(1.0))
    assert Sum(deep, Dense(1.0)).depth == 3
    assert Chain(Sum(Dense(1.0), deep), Act("relu"), Dense(1.0)).depth == 4
    assert Dense(1.0).depth == 0


def test_a_network_reads_as_the_code_that_makes_it():
    for name, net in NETWORKS.items():
        if name not in ("infinite", "leaky_relu"):
            assert eval(repr(net), {**vars(nngp)}) == net


BAD_VALUES = [
    (lambda: Dense(-1.0), "weight_var must be finite and not negative, got -1.0"),
    (lambda: Dense(0.0), "weight_var must be positive"),
    (lambda: Dense(1.0, float("inf")), "bias_var must be finite"),
    (lambda: Act("rellu"), "unknown activation 'rellu'; did you mean: relu"),
    (lambda: Dropout(0.0), "keep must be a probability above 0"),
    (lambda: Dropout(1.1), "keep must be a probability above 0 and at most 1"),
    (lambda: Sum(), "nngp.Sum needs at least one branch"),
    (lambda: Product(), "nngp.Product needs at least one branch"),
    (lambda: Concat(), "nngp.Concat needs at least one branch"),
    (lambda: Residual(), "nngp.Residual needs at least one part"),
    (lambda: Repeat(Dense(1.0), 0), "times must be a whole number of at least 1"),
    (lambda: Concat(Dense(1.0), shares=(0.5, 0.5)), "a positive number for each branch"),
    (lambda: Concat(Dense(1.0), Dense(1.0), shares=(0, 1)), "a positive number for each"),
    (lambda: Concat(Dense(1.0), Dense(1.0), shares=(0.5, 0.4)), "shares must add up to 1"),
    (lambda: NTK(Architecture(float("inf"))), "infinite depth is not available"),
    (lambda: Architecture(10**9), "at most 250,000 operations"),
    (lambda: Repeat(Dense(1.0), 300_000).graph, "at most 250,000 operations"),
]


def test_bad_values_are_refused():
    for make, message in BAD_VALUES:
        with pytest.raises(ValueError, match=message):
            make()


BAD_TYPES = [
    (lambda: Dense("1"), "weight_var must be one number, got str"),
    (lambda: Dropout(None), "keep must be one number, got NoneType"),
    (lambda: Chain(Dense(1.0), "relu"), "nngp.Chain is made of parts .*, got str"),
    (lambda: Sum(Architecture(1)), "nngp.Sum is made of parts .*, got Architecture"),
    (lambda: Residual(NTK(Dense(1.0))), "nngp.Residual is made of parts .*, got NTK"),
    (lambda: Repeat(None, 2), "nngp.Repeat is made of parts"),
    (lambda: NTK("relu"), "NTK takes a network .*, got str"),
    (lambda: NTK(NTK(Dense(1.0))), "NTK takes a network .*, got NTK"),
]


def test_bad_types_are_refused():
    for make, message in BAD_TYPES:
        with pytest.raises(TypeError, match=message):
            make()


def nested(times):
    found = Dense(1.0).as_dict()
    for _ in range(times):
        found = {"part": "chain", "parts": [found]}
    return found


DENSE = {"part": "dense", "weight_var": 1.0, "bias_var": 0.0}
PLAIN = {"depth": 1, "activation": "relu", "weight_var": 1.0, "bias_var": 0.1}


NO_NETWORKS = [
    (None, "a dictionary is needed, got NoneType"),
    ([DENSE], "a dictionary is needed, got list"),
    ("dense", "a dictionary is needed, got str"),
    ({}, "None is no part of a network; there are dense, act"),
    ({"part": []}, r"\[\] is no part of a network"),
    ({"part": "convolution"}, "'convolution' is no part of a network"),
    ({"part": "dense"}, "the part 'dense' lacks 'weight_var'"),
    ({**DENSE, "weight_var": "1"}, "weight_var must be one number, got str"),
    ({**DENSE, "weight_var": True}, "weight_var must be one number, got bool"),
    ({**DENSE, "weight_var": -1.0}, "weight_var must be finite and not negative"),
    ({**DENSE, "bias_var": float("nan")}, "bias_var must be finite and not negative"),
    ({**DENSE, "stride": 2}, "the part 'dense' has no entry 'stride'"),
    ({"part": "act", "activation": None}, "None describes no activation"),
    ({"part": "act", "activation": "os.system"}, "unknown activation 'os.system'"),
    ({"part": "act", "activation": ["leaky_relu", "0"]}, "needs finite numbers"),
    ({"part": "dropout", "keep": [0.5]}, "keep must be one number, got list"),
    ({"part": "chain", "parts": {"0": DENSE}}, "parts of a network must be a list"),
    ({"part": "chain", "parts": "dense"}, "parts of a network must be a list"),
    ({"part": "chain", "parts": [DENSE, 3]}, "None is no part of a network"),
    ({"part": "chain", "parts": [{"part": "ntk", "of": DENSE}]}, "'ntk' is no part"),
    ({"part": "chain", "parts": [PLAIN]}, "None is no part of a network"),
    ({"part": "sum", "branches": []}, "nngp.Sum needs at least one branch"),
    ({"part": "concat", "branches": [DENSE], "shares": 1}, "shares .* must be a list"),
    ({"part": "concat", "branches": [DENSE], "shares": ["1"]}, "a share must be one number"),
    ({"part": "repeat", "of": DENSE, "times": 2.0}, "times must be a whole number"),
    ({"part": "repeat", "of": None, "times": 2}, "None is no part of a network"),
    ({"part": "ntk"}, "the description of a network lacks 'of'"),
    ({"part": "ntk", "of": None}, "a dictionary is needed, got NoneType"),
    ({"part": "ntk", "of": {"part": "ntk", "of": DENSE}}, "NTK takes a network"),
    ({"part": "ntk", "of": {**PLAIN, "depth": "inf"}}, "infinite depth is not available"),
    ({"depth": 1}, "the description of a network lacks 'activation'"),
    ({**PLAIN, "depth": None}, "depth must be a whole number"),
    ({**PLAIN, "weight_var": "a"}, "weight_var must be a number or a sequence"),
    ({**PLAIN, "seed": 0}, "unexpected keyword argument 'seed'"),
    (nested(100_000), "nested too deeply"),
]


def test_a_dictionary_that_describes_no_network_is_a_value_error():
    for values, message in NO_NETWORKS:
        with pytest.raises(ValueError, match=message) as told:
            nngp.Network.from_dict(values)
        assert "\n" not in str(told.value)


def test_repr_is_the_constructor():
    names = {one: getattr(nngp, one) for one in dir(nngp)} | vars(nngp.activations)
    names |= {"inf": float("inf")}
    for net in NETWORKS.values():
        assert eval(repr(net), names) == net


def test_repr_keeps_every_digit_and_writes_no_more_than_it_needs():
    assert repr(Dense(1 / 3, 2.0)) == "Dense(0.3333333333333333, 2)"
    assert repr(Dropout(1 / 3)) == "Dropout(0.3333333333333333)"
    assert repr(Act(nngp.activations.leaky_relu(0.1))) == "Act(leaky_relu(0.1))"


def test_leaky_relus_of_one_slope_are_equal_however_many_there_were_between():
    first = Act(nngp.activations.leaky_relu(0.123))
    for i in range(300):
        nngp.activations.leaky_relu(2.0 + i)
    assert Act(nngp.activations.leaky_relu(0.123)) == first
    assert pickle.loads(pickle.dumps(first)) == first


def test_one_number_is_no_shares():
    with pytest.raises(TypeError, match=r"shares must be a sequence .* got 0\.5"):
        Concat(Dense(1.0), Dense(2.0), shares=0.5)


def test_a_width_in_place_of_a_variance():
    with pytest.warns(UserWarning, match=r"not a width.*W_std²"):
        nngp.Dense(512)
