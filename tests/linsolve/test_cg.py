"""Conjugate gradients against dense solves: products from tiles, preconditioners, the recurrence,
what is kept and what is recomputed, checkpoints, and what happens when it cannot be done."""

import re

import numpy as np
import pytest
from engines import SmallTiles

from nngp._digest import digest
from nngp.errors import CheckpointWarning, NotConvergedError, NotPositiveDefiniteError
from nngp.linsolve import (
    CG,
    Checkpoint,
    CpuEngine,
    Iteration,
    Landmarks,
    Progress,
    forecast_cg,
    plan_cg,
)
from nngp.linsolve.cg.gradients import conjugate_gradients
from nngp.linsolve.cg.nystrom import Nystrom, factor_landmarks
from nngp.linsolve.cg.product import KernelProduct
from nngp.linsolve.cg.single import SingleFactor
from nngp.linsolve.tiling import cut

N = 60


def vectors(rows):
    return np.random.default_rng(rows).standard_normal((rows, N))


class Dense:
    """Tiles of a matrix that is there, for any engine."""

    supports_padding = False

    def __init__(self, K, symmetric=True):
        self.K, self.symmetric, self.diagonal = K, symmetric, K.diagonal().copy()
        self.left = range(len(K))
        self.asked = 0

    def block(self, rows, columns, *, shift=0.0, out=None):
        self.asked += 1
        tile = self.K[rows, columns].copy()
        if self.symmetric and rows == columns:
            tile += shift * np.eye(len(tile))
        return tile


class Uploaded(Dense):
    def block(self, *where, **options):
        import jax.numpy as jnp

        return jnp.asarray(super().block(*where, **options))


def blocks_for(engine, K, symmetric=True):
    return (Dense if engine.name == "cpu" else Uploaded)(K, symmetric)


def smooth(n=N):
    """A kernel with quickly falling eigenvalues, and ones on its diagonal."""
    x = np.sort(np.random.default_rng(3).uniform(0, 4, n))
    return np.exp(-np.abs(x[:, None] - x))


def landmarks_for(engine, K, which):
    own = blocks_for(engine, K[np.ix_(which, which)])
    return Landmarks(blocks_for(engine, K[:, which], symmetric=False), own)


def no_progress(phase, work):
    return Progress(phase, work, None)


def iteration_for(engine, K, noise, room=np.inf, progress=no_progress, **options):
    asked = CG(**options)
    plan = plan_cg(engine, len(K), 3, 2, asked, noise)
    plan = type(plan)(**{**vars(plan), "room": room})
    iteration = Iteration.begin(engine, asked, plan, blocks_for(engine, K), progress)
    which = lambda rank: np.random.default_rng(1).choice(len(K), rank, replace=False)  # noqa: E731
    with engine.run() as run:
        iteration.prepare(run, noise, lambda rank: landmarks_for(engine, K, which(rank)))
    return iteration


def test_a_product_is_that_of_the_whole_matrix(engine):
    for room in (0, 8 * 7 * 7 * 20, np.inf):
        K, V = smooth(), vectors(3)
        product = KernelProduct(blocks_for(engine, K), cut(N, 7), room)
        with engine.run() as run:
            product.keep(run)
            computed = product.blocks.asked
            np.testing.assert_allclose(product(run, V), V @ K, atol=1e-13)
        lower = 9 * 10 // 2
        assert product.kept == pytest.approx(computed / lower)
        assert product.blocks.asked == lower  # the kept ones once before, the others now
        assert {0: computed == 0, np.inf: computed == lower}.get(room, computed == 20)


@pytest.mark.slow_on_jax(single=True)
@pytest.mark.parametrize("single", [False, True])
def test_the_low_rank_preconditioner_is_its_formula(engine, single):
    K, noise, which = smooth(), 1e-3, np.arange(0, N, 4)
    F = K[:, which] @ np.linalg.inv(np.linalg.cholesky(K[np.ix_(which, which)])).T
    tail = np.trace(K - F @ F.T) / N
    P = F @ F.T + (noise + tail) * np.eye(N)
    V = vectors(3)
    with engine.run() as run:
        landmarks = landmarks_for(engine, K, which)
        factored = factor_landmarks(run, landmarks, cut(N, 7), K.diagonal(), single=single)
        found = Nystrom(run, factored, cut(N, 7), noise, 1.0)
        assert found.shift == pytest.approx(noise + tail, rel=1e-6)
        tolerance = 1e-4 if single else 1e-9
        np.testing.assert_allclose(found(run, V), np.linalg.solve(P, V.T).T, rtol=tolerance)


@pytest.mark.slow_on_jax
def test_the_low_rank_preconditioner_with_noise_by_row(engine):
    K, noise, which = smooth(), np.geomspace(1e-6, 1e6, N), np.arange(0, N, 4)
    F = K[:, which] @ np.linalg.inv(np.linalg.cholesky(K[np.ix_(which, which)])).T
    P = F @ F.T + np.diag(noise + np.trace(K - F @ F.T) / N)
    V = vectors(3)
    with engine.run() as run:
        landmarks = landmarks_for(engine, K, which)
        factored = factor_landmarks(run, landmarks, cut(N, 7), K.diagonal())
        found = Nystrom(run, factored, cut(N, 7), noise, 1.0)
        np.testing.assert_allclose(found(run, V), np.linalg.solve(P, V.T).T, rtol=1e-9)


def test_squares_of_many_hands_are_summed_a_few_at_a_time(monkeypatch):
    """All of them in one place would be too much for one worker of a large cluster."""
    from nngp.linsolve.cg import nystrom

    engine, K, counts = CpuEngine(), smooth(), []

    def counted(*terms):
        counts.append(len(terms))
        return sum(terms)

    monkeypatch.setattr(nystrom, "_sum", counted)
    with engine.run() as run:
        run.width = 23
        landmarks = landmarks_for(engine, K, np.arange(0, N, 6))
        factored = factor_landmarks(run, landmarks, cut(N, 2), K.diagonal())
        F = np.concatenate([run.fetch(part) for part in factored.parts])
        np.testing.assert_allclose(run.fetch(factored.gram(run)), F.T @ F, rtol=1e-12)
    assert max(counts) <= nystrom.TERMS


def test_duplicates_among_landmarks_do_no_harm():
    K = smooth(30)[np.ix_(np.arange(N) // 2, np.arange(N) // 2)]
    found = iteration_for(CpuEngine(), K, 1e-3, preconditioner="nystrom", rank=N)
    with found.engine.run() as run:
        solution = found.solve(run, np.ones((1, N)))
    expected = np.linalg.solve(K + 1e-3 * np.eye(N), np.ones(N))
    np.testing.assert_allclose(solution.x[0], expected, rtol=1e-6)
    assert solution.iterations < 10


def test_a_float32_factor_preconditions(engine):
    K, V = smooth(), vectors(3)
    progress = Progress("", 1.0, None)
    single = SingleFactor(engine.single(), blocks_for(engine, K), cut(N, 7), 1e-3, progress)
    assert all("float32" in str(tile.dtype) for row in single._factor.rows for tile in row)
    with engine.run() as run:
        found = single(run, 1e-60 * V)  # float32 alone has no such numbers
    expected = np.linalg.solve(K + 1e-3 * np.eye(N), V.T).T
    assert np.linalg.norm(found * 1e60 - expected) < 1e-2 * np.linalg.norm(expected)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "options", [{"preconditioner": "nystrom", "rank": 20}, {"preconditioner": "single"}]
)
def test_solves_with_noise_by_row(engine, options):
    K, Y, noise = smooth(), vectors(2), np.geomspace(1e-5, 1e5, N)
    found = iteration_for(engine, K, 1e-4, tolerance=1e-12, **options)
    with engine.run() as run:
        found.prepare(run, noise, lambda rank: landmarks_for(engine, K, np.arange(rank) * 3))
        solution = found.solve(run, Y)
    expected = np.linalg.solve(K + np.diag(noise), Y.T).T
    np.testing.assert_allclose(solution.x, expected, rtol=1e-8, atol=1e-10)
    assert solution.iterations < 40


def test_a_float32_factor_that_breaks_down_gets_more_on_its_diagonal(monkeypatch):
    monkeypatch.setattr("nngp.linsolve.cg.single.EPS", 1e-14)  # too little to begin with
    K = np.ones((N, N)) + 1e-7 * smooth()  # float32 sees ones only
    progress = Progress("", 1.0, None)
    single = SingleFactor(SmallTiles().single(), Dense(K), cut(N, 7), 0.0, progress)
    assert 1e-9 < single.shift < 0.1


@pytest.mark.slow_on_jax("nystrom")
@pytest.mark.parametrize(
    ("options", "room"),
    [({"preconditioner": "nystrom", "rank": 20}, 0), ({}, np.inf)],
    ids=["nystrom", "single"],
)
def test_solves(engine, options, room):
    K, Y = smooth(), np.vstack([vectors(2), np.zeros(N), np.ones(N)])
    found = iteration_for(engine, K, 1e-4, room, tolerance=1e-12, **options)
    with engine.run() as run:
        solution = found.solve(run, Y)
    B = K + 1e-4 * np.eye(N)
    np.testing.assert_allclose(solution.x, np.linalg.solve(B, Y.T).T, rtol=1e-8, atol=1e-9)
    missed = np.linalg.norm(solution.x @ B - Y, axis=1)[[0, 1, 3]] / np.linalg.norm(
        Y[[0, 1, 3]], axis=1
    )
    assert solution.residual == pytest.approx(missed.max(), abs=1e-13)
    assert solution.residual <= 1e-12
    assert not solution.x[2].any()


@pytest.mark.slow_on_jax
def test_kept_tiles_and_tiles_computed_anew_give_the_same_bits(engine):
    K, Y = smooth(), vectors(2)
    both = []
    for room in (0, np.inf):
        found = iteration_for(engine, K, 1e-4, room, preconditioner="nystrom", rank=10)
        with engine.run() as run:
            both.append(found.solve(run, Y))
    assert np.array_equal(both[0].x, both[1].x)
    assert both[0].iterations == both[1].iterations


def plain(B, right, **options):
    return conjugate_gradients(
        lambda rows: rows @ B, lambda rows: rows.copy(), right, max_iterations=500, **options
    )


def test_a_missed_tolerance_is_an_error_that_says_how_far_it_came():
    found = iteration_for(CpuEngine(), smooth(), 1e-8, max_iterations=2, rank=2)
    error = pytest.raises(NotConvergedError, match=r"2 iterations.*max_iterations")
    with error as caught, found.engine.run() as run:
        found.solve(run, np.ones((1, N)) * np.arange(N))
    assert caught.value.iterations == 2
    assert 1e-8 < caught.value.residual < 1


def test_a_residual_that_rounding_forbids_is_an_error():
    Q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((8, 8)))
    B = Q @ np.diag(np.geomspace(1e-6, 1.0, 8)) @ Q.T
    with pytest.raises(NotConvergedError, match="rounding"):
        plain(0.5 * (B + B.T), np.ones((1, 8)), tolerance=1e-15)


def test_a_residual_that_grows_is_no_matter_of_iterations():
    B = np.diag(np.geomspace(1e-18, 1.0, 60))
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
    with pytest.raises(NotConvergedError, match="nearly singular: pass a larger noise_var"):
        plain(turned @ B @ turned.T + 1e-15 * np.eye(60), np.ones((1, 60)), tolerance=1e-8)


def test_a_recurrence_that_drifts_is_taken_up_again_from_the_true_residual():
    """Products that are off by a millionth at first: the recurrence does not notice."""
    B, right, calls = np.diag(np.linspace(1, 10, N)), np.ones((1, N)), []

    def product(rows):
        calls.append(rows)
        return rows @ B * (1 + 1e-6 * (len(calls) < 30))

    found = conjugate_gradients(product, lambda r: r, right, tolerance=1e-10, max_iterations=200)
    np.testing.assert_allclose(found.x, 1 / np.diagonal(B)[None], rtol=1e-9)
    assert found.residual <= 1e-10


def test_numbers_that_are_not_finite_are_an_error():
    with pytest.raises(NotConvergedError, match="too large for float64") as caught:
        plain(np.full((4, 4), np.inf) + np.eye(4), np.ones((1, 4)), tolerance=1e-8)
    assert caught.value.iterations == 1  # at once


def test_negative_curvature_is_not_positive_definite():
    with pytest.raises(NotPositiveDefiniteError):
        plain(np.diag([1.0, -1.0, 2.0]), np.array([[0.1, 1.0, 0.1]]), tolerance=1e-8)


def test_a_row_that_has_arrived_is_not_moved():
    B = np.diag([1.0, 2.0, 3.0, 4.0])
    easy, hard = np.array([0, 0, 1.0, 0]), np.ones(4)
    seen = []
    plain(B, np.stack([easy, hard]), tolerance=1e-12, told=lambda s, r: seen.append(s.x[0].copy()))
    assert len(seen) > 1
    assert all(np.array_equal(x, seen[0]) for x in seen)


def test_a_good_start_saves_iterations():
    B = np.diag(np.linspace(1, 100, N))
    right = np.ones((1, N))
    cold = plain(B, right, tolerance=1e-10)
    warm = plain(B, right, tolerance=1e-10, start=cold.x * (1 + 1e-6))
    assert warm.iterations < 0.7 * cold.iterations


# Checkpoints


class StopError(Exception):
    pass


def stopping(at):
    """Progress that fails after so many iterations."""
    seen = []

    def report(step):
        if step.message:
            seen.append(step)
            if len(seen) == at:
                raise StopError

    return lambda phase, work: Progress(phase, work, report)


def solved(folder, progress=no_progress, key="a", noise=1e-4, every=60.0):
    found = iteration_for(CpuEngine(), smooth(), noise, progress=progress, rank=4,
                          preconditioner="nystrom")  # fmt: skip
    with found.engine.run() as run:
        kept = Checkpoint(folder, key, every)
        return found.solve(run, np.stack([np.ones(N), np.arange(N)]), checkpoint=kept)


def test_an_interrupted_solve_goes_on_where_it_was(tmp_path):
    whole = solved(tmp_path)
    assert not list(tmp_path.iterdir())  # removed when done
    with pytest.raises(StopError):
        solved(tmp_path, stopping(whole.iterations // 2))
    assert [file.name for file in tmp_path.iterdir()] == ["nngp-cg-a.safetensors"]
    counted = []
    rest = solved(
        tmp_path,
        lambda phase, work: Progress(phase, work, lambda s: counted.append(s.message)),
    )
    assert np.array_equal(rest.x, whole.x)
    assert rest.iterations == whole.iterations
    done = sum(message.startswith("residual") for message in counted)
    assert done == whole.iterations - whole.iterations // 2
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_is_written_every_so_often(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "write", lambda self: written.append(self._state.iteration))
    whole = solved(tmp_path, every=0.0)
    assert written == list(range(1, whole.iterations + 1))
    written.clear()
    solved(tmp_path)
    assert written == []


def test_a_checkpoint_of_another_problem_is_not_used(tmp_path):
    with pytest.raises(StopError):
        solved(tmp_path, stopping(3), key="other")
    (file,) = tmp_path.iterdir()
    found = solved(tmp_path)
    assert list(tmp_path.iterdir()) == [file]  # whoever it belongs to may still want it
    file.rename(tmp_path / "nngp-cg-a.safetensors")
    with pytest.warns(CheckpointWarning, match="damaged"):
        again = solved(tmp_path)
    assert np.array_equal(found.x, again.x)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:900] + bytes([data[900] ^ 255]) + data[901:],
    ],
    ids=["truncated", "a byte"],
)
def test_a_damaged_checkpoint_is_noticed(tmp_path, damage):
    with pytest.raises(StopError):
        solved(tmp_path, stopping(3))
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(CheckpointWarning, match="damaged"):
        found = solved(tmp_path)
    assert np.array_equal(found.x, solved(tmp_path).x)


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_solve(tmp_path, monkeypatch):
    monkeypatch.setattr("nngp.linsolve.cg.checkpoint.write_tensors", full)
    with pytest.warns(CheckpointWarning, match="cannot be written") as warned:
        found = solved(tmp_path, every=0.0)
    assert len(warned) == 1
    assert found.iterations > 2
    assert list(tmp_path.iterdir()) == []


def full(*_, **__):
    raise OSError(28, "no space left on device")


def test_a_checkpoint_needs_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is no folder that can be used"):
        Checkpoint(tmp_path / "file", "key", 1.0)


def test_keys_tell_problems_apart():
    X = np.arange(6.0).reshape(2, 3)
    keys = {digest(X, 1), digest(X, 2), digest(X.T, 1), digest(X + 1, 1)}
    assert len(keys) == 4
    assert digest(X.copy(), 1) in keys


# What it takes


def test_memory_decides_what_is_kept_and_the_rank():
    engine, n = CpuEngine(), 20_000
    plans = [plan_cg(engine, n, 100, 1, CG(preconditioner="nystrom"), 1e-2, memory)
             for memory in (200e6, 600e6, 4e9)]  # fmt: skip
    for plan, memory in zip(plans, (200e6, 600e6, 4e9), strict=True):
        assert plan.forecast.bytes <= memory
    assert plans[0].rank < plans[1].rank <= plans[2].rank
    assert plans[0].room < plans[2].room
    asked = plan_cg(engine, n, 100, 1, CG(preconditioner="nystrom", rank=1000), 1e-2, 200e6)
    assert 16 <= asked.rank < 1000


def test_landmarks_that_fit_a_task():
    class Small(CpuEngine):
        def task_room(self):
            return 8.0 * 6 * 300**2

    options = CG(preconditioner="nystrom", tolerance=1e-12)
    usual, small = (plan_cg(e, 20_000, 100, 1, options, 1e-4) for e in (CpuEngine(), Small()))
    assert usual.rank > 300 >= small.rank > 150
    asked = plan_cg(Small(), 20_000, 100, 1, CG(rank=500), 1e-4)
    assert 150 < asked.rank <= 300


def test_one_float32_factor_at_a_time(monkeypatch):
    """A second one, for more noise, would not fit beside the first."""
    from nngp.linsolve.cg import iteration as iterate

    iteration = iteration_for(CpuEngine(), smooth(), 1e-3, preconditioner="single")
    made = iterate.SingleFactor
    held = []

    def alone(*arguments):
        held.append(iteration.is_ready)
        return made(*arguments)

    monkeypatch.setattr(iterate, "SingleFactor", alone)
    with iteration.engine.run() as run:
        iteration.prepare(run, 1e-2, None)
    assert held == [False]
    assert iteration.is_ready


def test_what_cannot_fit_is_refused():
    for options in (CG(), CG(preconditioner="single")):
        memory = 100e6
        with pytest.raises(MemoryError, match="conjugate gradients for 90000 points need") as error:
            plan_cg(CpuEngine(), 90_000, 100, 1, options, 1e-2, memory)
        fitting = int(re.search(r"at most (\d+) points would fit", str(error.value))[1])
        assert 0 < fitting < 90_000
        assert plan_cg(CpuEngine(), fitting, 100, 1, options, 1e-2, memory).forecast.bytes <= memory
        with pytest.raises(MemoryError, match="too little for any number of points"):
            plan_cg(CpuEngine(), 90_000, 100, 1, options, 1e-2, 1e6)


def test_a_rank_means_landmarks():
    assert plan_cg(CpuEngine(), 500, 5, 1, CG(), 1e-2).preconditioner == "single"
    asked = plan_cg(CpuEngine(), 500, 5, 1, CG(rank=40), 1e-2)
    assert (asked.preconditioner, asked.rank) == ("nystrom", 40)


def test_a_forecast_says_how_many_points_fit():
    engine = CpuEngine()
    small, large = (forecast_cg(engine, n, 10, 1, CG(), 500e6) for n in (10_000, 10_000_000))
    assert small.fits
    assert not large.fits
    assert 10_000 < small.largest == large.largest < 10_000_000


WRONG_OPTIONS = [
    {"tolerance": 0},
    {"tolerance": 2.0},
    {"rank": 0},
    {"max_iterations": 1.5},
    {"preconditioner": "jacobi"},
    {"checkpoint_seconds": -1},
    {"checkpoint": 5},
    {"checkpoint": ""},
    {"seed": -1},
    {"seed": "a"},
    {"rank": 5, "preconditioner": "single"},
]


def test_options_are_checked():
    for wrong in WRONG_OPTIONS:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            CG(**wrong)
