"""Ensembles beside their limit: runs against plain algebra, reading, words, figure."""

import numpy as np
import pytest
from paper_runs import fill, width_run

import nngp
from nngp_paper.datasets import split
from nngp_paper.part import Results
from nngp_paper.parts import width_limit
from nngp_paper.runs.study import Outcome, carry_out
from nngp_paper.scope import Scope

DIGITS = Scope("digits", (50, 100), activations=("relu", "tanh", "gelu"), engine="cpu")
MNIST = Scope("mnist", (100, 1000, 5000), activations=("relu", "tanh"))


def test_the_study_takes_a_thousand_points_and_narrow_networks_first():
    configs = width_limit.study(MNIST).configs
    assert {(c["train"], c["test"], c["networks"]) for c in configs} == {(1000, 2000, 64)}
    assert [c["width"] for c in configs] == sorted(c["width"] for c in configs)
    assert {c["activation"] for c in configs} == {"relu", "tanh"}
    assert (configs[0]["width"], configs[-1]["width"]) == (16, 2048)
    quick = width_limit.study(DIGITS).configs
    assert {(c["train"], c["test"], c["networks"]) for c in quick} == {(100, 500, 32)}
    large = width_limit.study(Scope("mnist", (5000, 10_000))).configs
    assert {c["train"] for c in large} == {5000}
    more = width_limit.study(MNIST, (64, 8192), 256, seed=1).configs
    assert {(c["width"], c["networks"], c["seed"]) for c in more} == {
        *((64, 256, 1), (8192, 256, 1))
    }


def test_a_run_against_plain_algebra(monkeypatch):
    """All numbers of a run from the networks' own kernels and from `condition`."""
    pytest.importorskip("jax")
    monkeypatch.setattr(width_limit, "MEMBERS", 2)
    study = width_limit.study(DIGITS, (40,), 6, seed=3)
    outcome = study.work(study.configs[0])
    assert outcome.device
    data, net = split("digits", 100), nngp.Architecture(3, "relu", 2.0, 0.2)
    Y, Ys, labels = data.targets(data.labels), data.targets(data.labels_test), data.labels_test
    network = nngp.FiniteNetwork(net, 40, n_out=10)
    kernels = network.empirical_kernels(np.concatenate([data.X, data.X_test]), 6, seed=3)[:, -1]
    process = nngp.condition(net, data.X, Y, noise_var=0.01).mean(data.X_test)
    solved = np.linalg.solve(kernels[:, :100, :100] + 0.01 * np.eye(100), Y)
    means = kernels[:, 100:, :100] @ solved

    def near(name, values):
        value, error = outcome.result[name][1]
        assert value == pytest.approx(np.mean(values), rel=1e-5)
        if len(values) > 1:
            assert error == pytest.approx(np.std(values, ddof=1) / len(values) ** 0.5, rel=1e-4)

    near("process_accuracy", [(process.argmax(axis=1) == labels).mean()])
    near("process_mse", [np.mean((process - Ys) ** 2)])
    pairs = means.reshape(3, 2, *process.shape).mean(axis=1)
    for name, own in (("single", means), ("ensemble", pairs)):
        near(f"{name}_accuracy", [(one.argmax(axis=1) == labels).mean() for one in own])
        near(f"{name}_mse", [np.mean((one - Ys) ** 2) for one in own])
        near(f"{name}_square", [np.mean((one - process) ** 2) for one in own])
    average = np.mean((means.mean(axis=0) - process) ** 2)
    within = np.var(means, axis=0, ddof=1).mean() / 6
    near("limit_square", [average - within])


@pytest.fixture
def data(store):
    fill(store, "width", width_limit.study(MNIST).configs, width_run)
    return width_limit.read(Results(store, MNIST))


def test_runs_are_read(data):
    assert (data.dataset, data.train, data.test, data.members) == ("mnist", 1000, 2000, 16)
    order = [(curve.noise_var, curve.activation) for curve in data.curves]
    assert order == [(1e-10, "relu"), (1e-10, "tanh"), (0.01, "relu"), (0.01, "tanh")]
    curve = data.curves[2]
    assert (curve.process_accuracy, curve.process_mse, curve.train) == (0.91, 0.021, 1000)
    assert [point.width for point in curve.points] == [16, 32, 64, 128, 256, 512, 1024, 2048]
    assert curve.widest.single_mse.value == pytest.approx(0.021 + 0.3 / 2048)
    assert curve.power("limit_square").slope == pytest.approx(-1.0)
    assert curve.power("single_square").slope == pytest.approx(-0.5)
    assert data.curves[0].power("limit_square") is None  # the peak is among the widest


def test_the_most_networks_count_and_wider_ones_are_welcome(store):
    """Whoever did them; runs of other data do not."""
    for scope, widths, networks in ((MNIST, (64, 16), 256), (MNIST, (64, 8192), 48)):
        fill(store, "width", width_limit.study(scope, widths, networks).configs, width_run)
    other = Scope("mnist", (500,), activations=("relu",))
    fill(store, "width", width_limit.study(other, (32,), 999).configs, width_run)
    found = width_limit.read(Results(store, MNIST))
    known = [(point.width, point.networks) for point in found.curves[0].points]
    assert known == [(16, 256), (64, 256), (8192, 48)]


def test_runs_resume(store):
    calls = []
    study = width_limit.study(DIGITS, (16, 32), 32)
    study = type(study)(study.experiment, study.configs, lambda c: calls.append(c) or Outcome({}))
    carry_out(store, study)
    carry_out(store, study)
    assert len(calls) == 4


def test_the_finding_has_its_numbers(data):
    said = width_limit.finding(data)
    assert "relu with noise 0.01: mean squared error of ensembles of 16 0.0273 at width 16" in said
    assert "the process 0.0210" in said
    assert "accuracy 72.25% and 90.85%, the process 91.00%" in said
    assert "falls as width^(−1.000 ± 0.005) and a single network's as width^(−0.500 ± " in said
    assert "at widths 512 to 2,048; theory says −1 and −0.5, far above 1,000; tanh" in said
    peak = "tanh with noise 1e−10: single networks are worst at width 1,024 (mean squared error 1.1"
    assert peak in said
    assert "noise 0.01: single networks are worst" not in said


@pytest.mark.parametrize(
    ("slope", "peak", "word"),
    [
        *((-1.0, 1.0, "supported"), (-0.6, 1.0, "partly"), (0.0, 1.0, "not supported")),
        *((-1.0, 50.0, "supported"), (-1.0, 80.0, "partly"), (0.0, 80.0, "not supported")),
    ],
)
def test_verdicts_follow_the_slope_and_the_peak(store, slope, peak, word):
    """A peak counts if it is above the narrowest networks: by 1024 / 16 = 64 in the square."""

    def result(config):
        width = config["width"]
        square, single = width ** (2 * slope), 0.3 / width
        of_peak = single * (peak if width == 1024 else 1.0)
        return {
            **width_run(config),
            "limit_square": [[square, 0.01 * square]] * 2,
            "single_square": [[of_peak, 0.01 * of_peak], [single, 0.01 * single]],
        }

    fill(store, "width", width_limit.study(MNIST).configs, result)
    judged = width_limit.verdict(width_limit.read(Results(store, MNIST)))
    found, said = judged.word, judged.reason
    assert found == word
    assert f"({slope:.3f} ± ".replace("-", "−") in said
    assert "At widths 512 to 2,048" in said
    away = "with noise 1e−10 and 1,000 training points a single relu network is 0.15 from the"
    assert (away in said) == (peak == 80.0)


def test_an_uncertain_slope_is_no_verdict(store):
    def result(config):
        return {**width_run(config), "limit_square": [[1e-6, 1e-6]] * 2}

    fill(store, "width", width_limit.study(MNIST).configs, result)
    judged = width_limit.verdict(width_limit.read(Results(store, MNIST)))
    found, said = judged.word, judged.reason
    assert found == "partly"
    assert said.startswith("A single relu network is 0.137 from the process at width 16")


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_shows_everything_and_cuts_nothing(data, pyplot, tmp_path, narrow):
    figure = width_limit.draw(data, narrow=narrow)
    figure.canvas.draw()
    assert len(figure.axes) == 6
    columns = {round(axes.get_position().x0, 1) for axes in figure.axes}
    assert len(columns) == (1 if narrow else 3)
    mse = figure.axes[4]
    levels = [line for line in mse.lines if line.get_linestyle() == "--"]
    assert [line.get_ydata()[0] for line in levels] == [0.021, 0.021]
    distance = figure.axes[5]
    fits = [line for line in distance.lines if str(line.get_label()).startswith("slope")]
    assert [line.get_label() for line in fits] == ["slope −1.00 ± 0.01"] * 2
    x, y = fits[0].get_data()
    np.testing.assert_allclose(y, 3 / np.asarray(x))
    assert "1,000 training and 2,000 test points" in figure.get_suptitle()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= figure.get_figwidth()
    assert box.y1 <= figure.get_figheight()
    width_limit.draw(data, tmp_path / "a.png", narrow=narrow)
    assert (tmp_path / "a.png").stat().st_size > 10_000
