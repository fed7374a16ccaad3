"""The paper's ranges, and what a recipe or a plan refuses."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from nngp_paper.finite.recipe import BATCH_SIZES, Plan, Recipe, random_recipes


def test_recipes_follow_the_papers_ranges():
    drawn = list(islice(random_recipes(3), 2000))
    for name, low, high in (("learning_rate", 1e-4, 0.2), ("weight_decay", 1e-8, 1.0)):
        logs = np.log([getattr(recipe, name) for recipe in drawn])
        uniform = stats.uniform(np.log(low), np.log(high / low))
        assert stats.kstest(logs, uniform.cdf).pvalue > 0.01
    for name, low, high in (("weight_var", 0.01, 2.5), ("bias_var", 0.0, 1.5)):
        sigma = np.sqrt([getattr(recipe, name) for recipe in drawn])
        assert stats.kstest(sigma, stats.uniform(low, high - low).cdf).pvalue > 0.01
    counts = [sum(recipe.batch_size == size for recipe in drawn) for size in BATCH_SIZES]
    assert sum(counts) == 2000
    assert stats.chisquare(counts).pvalue > 0.01


def test_a_recipe_does_not_depend_on_how_many_are_taken():
    assert list(islice(random_recipes(1, 2), 5)) == list(islice(random_recipes(1, 2), 9))[:5]
    assert list(islice(random_recipes(1, 2), 5)) != list(islice(random_recipes(2, 1), 5))
    assert len({recipe.seed for recipe in islice(random_recipes(0), 100)}) == 100


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"learning_rate": 1e300}, "learning_rate must be"),
        ({"weight_var": 0}, "weight_var must be a positive number"),
        ({"weight_decay": -1e-3}, "weight_decay must be zero or a positive number"),
        ({"bias_var": float("inf")}, "bias_var must be"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": 2**32}, "seed must be below"),
    ],
)
def test_recipes_that_cannot_be(wrong, said):
    with pytest.raises(ValueError, match=said):
        Recipe(**wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"loss": "hinge"}, "loss must be 'mse' or 'cross_entropy'"),
        ({"monitor": "test"}, "monitor must be 'validation' or 'train'"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"patience": True}, "patience must be"),
        ({"steps": 250}, "steps must be a multiple of interval, got 250 and 100"),
    ],
)
def test_plans_that_cannot_be(wrong, said):
    with pytest.raises(ValueError, match=said):
        Plan(**wrong)
