"""Posteriors with noise by row in files: the same to the bit, and refused where the noise was
changed."""

import json

import numpy as np
import pytest
from damage import flip, forged, outcome, parts_of, put
from engines import SmallTiles

import nngp
from nngp._records import from_plain, to_plain
from nngp._tensors import open_tensors, write_tensors
from nngp.posterior.saved import SavedPosterior

RNG = np.random.default_rng(0)
N = 23
NET = nngp.Architecture(2, "erf", 2.0, 0.5)
X, XS = RNG.standard_normal((N, 3)), RNG.standard_normal((6, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
NOISE = RNG.permutation(np.geomspace(1e-4, 1e6, N))
WAYS = {
    "whole": (X, {}),
    "split": (nngp.normalize(X), {"relative_noise": True}),
    "no factor": (X, {}),
    "cg": (X, {"solver": nngp.CG(tolerance=1e-12)}),
    "raised": (X[np.arange(N) % 12], {"noise_var": np.where(np.arange(N) < 20, 1e-20, 1.0)}),
}


def written(path, posterior, *, factor=True):
    plain, arrays = to_plain(SavedPosterior.of(posterior, factor=factor))
    write_tensors(path, {"description": json.dumps(plain)}, arrays)


def read(path, engine="cpu"):
    try:
        file = open_tensors(path)
        plain = json.loads(file.facts["description"])
    except ValueError as cause:
        raise nngp.errors.ModelFileError(str(cause)) from None
    return from_plain(SavedPosterior, plain, file.arrays).restore(engine=engine)


def made(way):
    inputs, options = WAYS[way]
    targets = Y[np.arange(N) % 12] if way == "raised" else Y
    return nngp.condition(NET, inputs, targets, engine="cpu", **{"noise_var": NOISE, **options})


def everything(posterior):
    """What a posterior says, as one array."""
    Xs = nngp.normalize(XS) if posterior.report.noise_unit != 1 else XS
    numbers = [*posterior.predict(Xs, noise=0.5), posterior.covariance(Xs), posterior.noise_var]
    if posterior.report.solver == "cholesky":
        numbers += [*posterior.leave_one_out(), posterior.evidence_gradient()["noise_var"]]
    return np.concatenate([np.ravel(part) for part in numbers])


@pytest.mark.filterwarnings("ignore::nngp.errors.NoiseWarning")
@pytest.mark.parametrize("way", WAYS)
def test_the_same_to_the_bit(way, tmp_path):
    path, posterior = tmp_path / "model.nngp", made(way)
    written(path, posterior, factor=way != "no factor")
    again = read(path)
    np.testing.assert_array_equal(everything(again), everything(posterior))
    assert again.report == posterior.report
    new = X[:2] if way != "split" else nngp.normalize(X)[:2]
    for one in (posterior, again):
        one.update(new + (0 if way == "split" else 0.1), Y[:2], noise_var=[1e-3, 7.0])
    np.testing.assert_array_equal(everything(again), everything(posterior))
    assert again.report.rows_raised == posterior.report.rows_raised


def test_on_another_engine_to_rounding(tmp_path):
    path, posterior = tmp_path / "model.nngp", made("whole")
    written(path, posterior)
    found, expected = everything(read(path, SmallTiles())), everything(posterior)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("way", ["split", "no factor", "cg"])
def test_noise_that_was_changed_is_refused(way, tmp_path):
    path, posterior = tmp_path / "model.nngp", made(way)
    written(path, posterior, factor=way != "no factor")
    whole, expected = path.read_bytes(), everything(posterior)

    def judge(data):
        path.write_bytes(data)
        return outcome(
            lambda: everything(read(path)),
            nngp.errors.ModelFileError,
            lambda f: (f == expected).all(),
        )

    def changed(place, value):
        out = NOISE.copy()
        out[place] = value
        return out

    least, largest = NOISE.argmin(), NOISE.argmax()
    bad = [changed(3, np.nan), changed(3, -NOISE[3]), changed(3, np.inf), NOISE[:-1]]
    bad += [NOISE[:, None], NOISE.astype("float32"), changed(least, 1e-3), changed(largest, 2e6)]
    bad += [np.zeros(N), np.full(N, 1e300), np.full(N, NOISE.min()), NOISE[::-1].copy()]
    assert judge(forged(whole, **{"noise.stated": NOISE})) == "same"
    for number, noise in enumerate(bad):
        assert judge(forged(whole, **{"noise.stated": noise})) == "refused", number
    start = whole.index(NOISE.tobytes())
    for byte in (0, 8 * N - 1, 5):
        assert judge(flip(whole, 8 * (start + byte))) == "refused"
    for place, value in (
        ("noise.stated", 0.1), ("noise.floor", 1e-3), ("noise.floor", None), ("noise.unit", 2.0),
        ("noise_var", 1e-3), ("report.noise_var_largest", 1e5), ("report.rows_raised", 1),
        ("report.noise_var_asked", 1e-5),
    ):  # fmt: skip
        data = forged(whole, lambda h, p=place, v=value: put(h, p.split("."), v))
        assert judge(data) == "refused", place


def test_one_number_needs_no_array(tmp_path):
    path = tmp_path / "model.nngp"
    written(path, nngp.condition(NET, X, Y, noise_var=0.1))
    assert "noise.stated" not in parts_of(path.read_bytes())[1]
    assert read(path).noise_var == 0.1
