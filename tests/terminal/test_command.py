"""The command line as its users meet it: files in, files out, sentences, exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import nngp  # noqa: E402


def houses(n, seed=0):
    rng = np.random.default_rng(seed)
    size, rooms = rng.uniform(50, 200, n), rng.integers(1, 7, n)
    town = rng.choice(["Ulm", "Bonn", "Köln"], n)
    price = 3 * size + 20 * rooms + 100 * (town == "Bonn") + rng.normal(0, 5, n)
    known = rng.random(n) > 0.03
    return pl.DataFrame(
        {
            "id": [f"house {seed}-{i}" for i in range(n)],
            "size": [s if k else None for s, k in zip(size, known, strict=True)],
            "rooms": rooms,
            "town": town,
            "country": ["D"] * n,
            "price": price,
            "dear": np.where(price > 500, "yes", "no"),
        }
    )


def test_the_main_job(run, tmp_path):
    houses(80).write_csv("train.csv")
    houses(60, seed=1).write_parquet("test.parquet")
    code, out, said = run("fit train.csv --target price --drop dear -o houses.nngp")
    assert code == 0
    assert "the task is regression" in said
    assert "column 'id' is left out" in said
    assert "column 'country' is left out: it is constant" in said
    assert "column 'size' lacks" in said
    assert "column 'town' is text: one input for each of its 3 values" in said
    assert "leave-one-out" in out
    code, _, said = run("predict houses.nngp test.parquet -o out.csv")
    assert (code, said.endswith("60 predictions written to out.csv")) == (0, True)
    table = pl.read_csv("out.csv")
    assert table.columns == ["price", "price_std", "price_lower", "price_upper"]
    truth = houses(60, seed=1)
    known = truth["size"].is_not_null()
    missed = (table["price"] - truth["price"]).filter(known)
    assert missed.std() < 25  # of 150; a few sizes are missing in training
    inside = (table["price_lower"] < truth["price"]) & (truth["price"] < table["price_upper"])
    assert inside.mean() > 0.8
    code, out, _ = run("evaluate houses.nngp test.parquet --json")
    scores = json.loads(out)
    assert set(scores) == {"rows", "rmse", "r2", "log_likelihood", "coverage_95"}
    assert scores["rmse"] == pytest.approx(
        np.sqrt(((table["price"] - truth["price"]) ** 2).mean()), rel=1e-12
    )
    code, out, _ = run("inspect houses.nngp --json")
    facts = json.loads(out)
    assert facts["columns"] == ["size", "rooms", "town"]
    assert facts["target"] == "price"
    # what Python loads is the same model
    model = nngp.load("houses.nngp")
    assert model.n_features_in_ == 5
    assert facts["log_evidence"] == model.log_evidence_


def test_rows_far_outside_are_named(run):
    houses(60).write_csv("train.csv")
    run("fit train.csv -t price --drop dear --budget 2")
    new = houses(5, seed=1).with_columns(size=pl.lit(120.0))
    new.write_csv("new.csv")
    assert "far outside" not in run("predict model.nngp new.csv")[2]
    new.with_columns(size=pl.lit(1e6)).write_csv("new.csv")
    for words in ("predict model.nngp new.csv", "evaluate model.nngp new.csv"):
        code, _, said = run(words)
        assert code == 0
        assert "note: 5 of 5 row(s) lie far outside the training data, in column(s) 'size'" in said


def test_one_row_is_said_to_be_too_few(run):
    pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 1.0, 5.0]}).write_csv("three.csv")
    code, _, said = run("fit three.csv -t y")
    assert code == 0
    assert "note: noise and scale are assumed" in said


def test_one_log_evidence_is_shown(run):
    """In the units of the target: by fit, by inspect, in Python, and for a model from Python."""
    table = houses(60).select("size", "rooms", "price", "dear")
    table.write_csv("train.csv")
    _, out, _ = run("fit train.csv -t price --drop dear --budget 2 --json")
    shown = json.loads(out)["log_evidence"]
    model = nngp.load("model.nngp")
    K = nngp.kernel(model.network_, model.posterior_.inputs.X)
    spread = table["price"].std(ddof=0)
    cov = (K + model.noise_var_ * np.eye(60)) * spread**2
    exact = multivariate_normal(np.full(60, table["price"].mean()), cov).logpdf(table["price"])
    assert shown == pytest.approx(exact, rel=1e-8)
    assert model.log_evidence_ == pytest.approx(shown, rel=1e-12)
    assert json.loads(run("inspect model.nngp --json")[1])["log_evidence"] == shown
    model.save("python.nngp")
    assert json.loads(run("inspect python.nngp --json")[1])["log_evidence"] == shown
    _, out, _ = run("fit train.csv -t dear --budget 2 --json")
    assert "log_evidence_one_hot" in json.loads(out)


def test_classes(run):
    houses(80).drop("price").write_csv("train.csv")
    houses(40, seed=1).write_csv("test.csv")
    code, out, said = run("fit train.csv -t dear --budget 30 --json")
    assert code == 0
    assert "the task is classification: column 'dear' is not numeric" in said
    assert json.loads(out)["accuracy"] > 0.8
    code, out, _ = run("predict model.nngp test.csv --json")
    rows = json.loads(out)["predictions"]
    assert set(rows[0]) == {"dear", "dear_p_no", "dear_p_yes"}
    assert all(row["dear_p_no"] + row["dear_p_yes"] == pytest.approx(1) for row in rows)
    code, out, _ = run("evaluate model.nngp test.csv --json")
    assert json.loads(out)["accuracy"] > 0.8


def test_whole_numbers_are_classes_if_few(run):
    table = houses(60).select("size", "rooms", "price")
    table.write_csv("train.csv")
    _, _, said = run("fit train.csv -t rooms --budget 2")
    assert "the task is classification: column 'rooms' holds 6 whole numbers" in said
    _, out, _ = run("fit train.csv -t rooms --task regression --budget 2 --json")
    assert json.loads(out)["task"] == "regression"
    _, out, _ = run("predict model.nngp train.csv")
    assert out.splitlines()[0] == "rooms,rooms_std,rooms_lower,rooms_upper"


def test_what_training_did_not_have(run):
    houses(60).write_csv("train.csv")
    run("fit train.csv -t price --drop dear --budget 3")
    new = houses(5, seed=1).with_columns(town=pl.lit("Rom"), size=pl.lit(None, dtype=pl.Float64))
    new.write_csv("new.csv")
    code, out, said = run("predict model.nngp new.csv")
    assert code == 0
    assert "column 'town' has 5 value(s) that training did not" in said
    assert "column 'size' lacks 5 value(s)" in said
    assert len(out.splitlines()) == 6


def test_kernel(run):
    X = np.random.default_rng(0).normal(size=(6, 3))
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv("points.csv")
    code, _, _ = run("kernel points.csv --depth 2 --activation erf -o K.npy")
    assert code == 0
    expected = nngp.kernel(nngp.Architecture(2, "erf", 1.6, 0.1), X)
    np.testing.assert_allclose(np.load("K.npy"), expected, rtol=1e-14)
    code, out, _ = run("kernel points.csv --depth 2 --activation erf")
    assert len(out.splitlines()) == 7
    _, out, _ = run("kernel points.csv --normalize --json")
    assert json.loads(out)["method"] == "curve"


def test_kernel_of_a_network_in_a_file(run):
    X = nngp.normalize(np.random.default_rng(0).standard_normal((5, 3)))
    np.savetxt("points.csv", X, delimiter=",", header="a,b,c", comments="")
    block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Repeat(block, 3))
    Path("net.json").write_text(json.dumps(net.as_dict()))
    assert run("kernel points.csv --normalize --network net.json -o K.npy")[0] == 0
    np.testing.assert_allclose(np.load("K.npy"), nngp.kernel(net, nngp.normalize(X)), rtol=1e-12)
    assert run("kernel points.csv --normalize --network net.json --ntk -o K.npy")[0] == 0
    expected = nngp.kernel(nngp.NTK(net), nngp.normalize(X))
    np.testing.assert_allclose(np.load("K.npy"), expected, rtol=1e-12)
    _, out, _ = run("kernel points.csv --normalize --depth 2 --ntk --json")
    assert json.loads(out)["network"].startswith("NTK(Architecture(depth=2")
    code, _, err = run("kernel points.csv --network net.json --depth 2")
    assert code == 2
    assert "remove --depth" in err
    for text, message in {"{}": "describes no network", '{"part": "act"}': "lacks"}.items():
        Path("bad.json").write_text(text)
        code, _, err = run("kernel points.csv --network bad.json")
        assert code == 3
        assert message in err
    code, _, err = run("kernel points.csv --network none.json")
    assert code == 3
    assert "there is no file none.json" in err


@pytest.fixture
def coarse(monkeypatch):
    """Pictures of phases on a grid that is quick to compute."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("nngp.plots.phases.GRID", (12, 9))


def test_phase(run, coarse):
    code, out, _ = run("phase --activation erf --bias-var 0.2 --out erf.svg --table erf.csv --json")
    assert code == 0
    assert sorted(path.name for path in Path().iterdir()) == ["erf.csv", "erf.svg"]
    facts = json.loads(out, parse_constant=pytest.fail)
    assert (facts["picture"], facts["table"], facts["activation"]) == ("erf.svg", "erf.csv", "erf")
    line = nngp.regimes.critical_line("erf", 0.2)
    assert facts["critical_weight_var"] == line
    ordered, critical, chaotic = facts["networks"]
    assert [net["phase"] for net in facts["networks"]] == ["ordered", "critical", "chaotic"]
    assert critical["weight_var"] == line
    assert critical["depth_scale_correlation"] is None  # infinite
    at = ("erf", 2 * line, 0.2)
    assert chaotic["correlation"] == nngp.regimes.correlation_fixed_point(*at) < 1
    assert chaotic["variance"] == nngp.regimes.variance_fixed_point(*at)
    assert (
        chaotic["depth_scale_variance"],
        chaotic["depth_scale_correlation"],
    ) == nngp.regimes.depth_scale(*at)
    assert ordered["chi"] == nngp.regimes.chi("erf", line / 2, 0.2) < 1
    table = pl.read_csv("erf.csv")
    assert table.height == 12 * 9
    assert set(table["phase"]) == {"ordered", "chaotic"}


def test_phase_of_one_network(run, coarse):
    code, out, _ = run("phase --activation relu --weight-var 3 -o relu.png")
    assert code == 0
    assert Path("relu.png").read_bytes().startswith(b"\x89PNG")
    shown = " ".join(out.split())
    assert "weight_var 3 bias_var 0.1 phase unbounded limiting variance inf" in shown


def test_a_phase_for_programs_draws_no_picture_unless_asked(run, coarse):
    assert json.loads(run("phase erf --json")[1])["networks"]
    assert "table" in json.loads(run("phase erf --json --table erf.csv")[1])
    assert [path.name for path in Path().iterdir()] == ["erf.csv"]


def test_a_picture_is_named_after_what_it_shows(run, coarse, monkeypatch):
    def drawn(data, path):
        path.write_text(repr([(net.weight_var, net.bias_var) for net in data.networks]))

    monkeypatch.setattr("nngp.terminal.networks.draw_phases", drawn)
    kept = {}
    for words in ("erf", "erf --weight-var 2", "erf --bias-var 0.3"):
        code, _, said = run(f"phase {words}")
        assert (code, said) == (0, "")
        assert all(path.read_bytes() == old for path, old in kept.items())
        kept = {path: path.read_bytes() for path in Path().iterdir()}
    names = ["phase-erf-b0.3.svg", "phase-erf-w2.svg", "phase-erf.svg"]
    assert sorted(map(str, kept)) == names
    assert run("phase relu -o phase-erf.svg")[2] == ""  # as asked


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("fit t.csv -t y --selection none", "model.nngp"),
        pytest.param("phase relu", "phase-relu.svg", marks=pytest.mark.slow),
    ],
)
def test_a_default_name_replaces_no_file_silently(run, coarse, words, file):
    Path("t.csv").write_text("a,y\n" + "".join(f"{i},{i % 7}\n" for i in range(30)))
    assert "will be replaced" not in run(words)[2]
    code, _, said = run(words)
    assert code == 0
    assert f"{file} is there already and will be replaced; -o names another file" in said
    assert "will be replaced" not in run(f"{words} -o {file}")[2]


WRONG = {
    "phase --nope": "no such option: --nope",
    "phase --weight-var x": "invalid value for '--weight-var'",
    "fit": "missing argument 'train'",
    "nope": "no such command 'nope'",
    "phase relu tanh": "unexpected extra argument",
    "fit t.csv -t y --tile 0": "invalid value for '--tile'",
}


def test_a_wrong_command_line_gives_one_sentence(run):
    for words in WRONG:
        code, out, said = run(words)
        assert (code, out) == (2, "")
        assert said.startswith("error: ")
        assert WRONG[words] in said
        assert said.endswith("--help")
        assert "│" not in said


def test_without_a_command_there_is_help(run):
    code, out, said = run("")
    assert (code, said) == (2, "")
    assert "evaluate" in out


def test_a_phase_is_refused_before_any_work(run, monkeypatch):
    monkeypatch.setattr("nngp.terminal.networks.phases", pytest.fail)
    for option in ("--table no/t.csv", "-o no/p.svg", "--weight-var -1"):
        code, _, said = run(f"phase {option}")
        assert (code, said.startswith("error: ")) == (2, True)


def test_a_phase_that_cannot_be_drawn_leaves_nothing(run, coarse, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("no space left on device")

    Path("old.svg").write_text("as it was")
    monkeypatch.setattr("nngp.terminal.networks.write_table", broken)
    code, _, said = run("phase --activation erf -o old.svg --table new.csv")
    assert (code, "no space left on device" in said) == (3, True)
    assert [path.name for path in Path().iterdir()] == ["old.svg"]
    assert Path("old.svg").read_text() == "as it was"


IMPOSSIBLE = [
    ("phase -o /proc/x.png", "nothing can be written to /proc"),
    ("phase tanh --bias-var 1e31 -o x.png", "between 0 and 1e+30"),
    ("phase thanh -o x.png", "did you mean: tanh"),
]


def test_phase_refuses_impossible_options(run):
    for words, said in IMPOSSIBLE:
        code, _, error = run(words)
        assert code == 2
        assert said in error


def test_help_has_an_example_everywhere(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("fit", "predict", "evaluate", "inspect", "kernel", "phase", "demo"):
        assert command in out
        code, own, _ = run(f"{command} --help")
        assert code == 0
        assert f"Example: nngp {command}" in " ".join(own.split())
    assert run("--version")[1].startswith("nngp ")


BAD = {
    "fit nothing.csv -t y": (3, "there is no file nothing.csv"),
    "fit trian.csv -t y": (3, "did you mean 'train.csv'"),
    "fit train.csv -t prise": (2, "there is no column 'prise' (did you mean 'price'?)"),
    "fit train.csv -t price --drop twon": (2, "did you mean 'town'?"),
    "fit train.csv -t price --depth deep": (2, "--depth must be a whole number, inf or auto"),
    "fit train.csv -t price --noise-var x": (2, "--noise-var must be a number or auto"),
    "fit train.csv -t price --activation rleu": (2, "did you mean: relu"),
    "fit train.csv -t price -o no/model.nngp": (2, "the folder no does not exist"),
    "fit train.csv -t price --drop price": (2, "'price' is the target"),
    "fit twice.csv -t y": (3, "more than one column 'x'"),
    "predict good.nngp fine.csv -o out.txt": (2, "the name must end in .csv"),
    "fit infinite.csv -t x --task classification": (3, "holds infinite values"),
    "fit train.csv -t price --engine tpu": (2, "--engine must be"),
    "fit train.csv -t price --budget 0": (2, "--budget must be"),
    "fit fine.csv -t y -o fine.csv": (2, "is the input"),
    "fit stray.csv -t y": (3, "column 'x' holds numbers but for 'x1' (1 value(s))"),
    "fit train.csv -t town --task regression": (2, "regression needs numbers"),
    "fit train.ods -t y": (2, "the name must end in .csv"),
    "fit empty.csv -t y": (3, "empty.csv"),
    "fit broken.parquet -t y": (3, "could not be read as PARQUET"),
    "fit missing.csv -t y": (3, "column 'y' is empty"),
    "fit infinite.csv -t y": (3, "column 'x' holds infinite values"),
    "fit constant.csv -t y": (3, "no column is left to learn from"),
    "predict train.csv train.csv": (3, "is not a saved nngp model"),
    "predict nothing.nngp train.csv": (3, "there is no file nothing.nngp"),
    "inspect cut.nngp": (3, "cut.nngp is damaged"),
    "predict python.nngp train.csv": (3, "knows no columns"),
    "predict good.nngp other.csv": (3, "there is no column 'x'"),
    "predict good.nngp text.csv": (3, "column 'x' held numbers in training"),
    "predict good.nngp fine.csv --interval 95": (2, "--interval must be between 0 and 1"),
    "evaluate good.nngp other.csv": (3, "other.csv has no column 'y' to compare with"),
    "kernel train.csv": (3, "column 'id' holds text, not numbers"),
    "kernel fine.csv --depth -1": (2, "--depth must be a whole number"),
    "phase --activation thanh": (2, "did you mean: tanh"),
    "phase -o phase.txt": (2, "the name must end in .svg, .png, .pdf"),
    "phase -o no/phase.svg": (2, "the folder no does not exist"),
    "phase --table phase.npy": (2, "the name must end in .csv"),
    "phase --weight-var 0": (2, "--weight-var must be positive"),
    "phase --weight-var -1": (2, "--weight-var must be finite and not negative"),
    "phase --bias-var nan": (2, "--bias-var must be finite and not negative"),
    "bake train.csv": (2, "no such command"),
}


@pytest.fixture
def files(run):
    houses(30).write_csv("train.csv")
    pl.DataFrame({"x": [1.0, 2.0, 4.0], "y": [1.0, 4.0, 16.0]}).write_csv("fine.csv")
    run("fit fine.csv -t y -o good.nngp")
    whole = Path("good.nngp").read_bytes()
    Path("cut.nngp").write_bytes(whole[: len(whole) // 2])
    nngp.NNGPRegressor(selection=None).fit([[1.0], [2.0]], [1.0, 2.0]).save("python.nngp")
    for name, text in {
        "train.ods": "y\n1\n",
        "empty.csv": "",
        "broken.parquet": "hello",
        "missing.csv": "x,y\n1,\n2,NA\n",
        "infinite.csv": "x,y\n1,1\ninf,2\n3,3\n",
        "other.csv": "z\n1\n",
        "text.csv": "x\nhello\n",
        "twice.csv": "x, x,y\n1,2,3\n4,5,6\n",
        "stray.csv": "x,y\n1,2\nx1,3\n3,5\n4,1\n5,2\n6,3\n",
        "constant.csv": "x,y\n5,1\n5,2\n5,3\n",
    }.items():
        Path(name).write_text(text)
    days = pl.DataFrame({"x": ["2024-01-01", "2024-01-02"], "y": [1.0, 2.0], "z": [1, 2]})
    days.with_columns(pl.col("x").str.to_date()).write_parquet("dates.parquet")
    return run


def test_bad_input(files):
    for words in BAD:
        expected, sentence = BAD[words]
        code, out, said = files(words)
        assert (code, sentence in said) == (expected, True), (words, said)
        assert "Traceback" not in said + out


def test_no_gpu_is_said(files):
    jax = pytest.importorskip("jax")
    if any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("this machine has a GPU")
    code, _, said = files("fit fine.csv -t y --engine gpu --selection none")
    assert (code, "--engine gpu needs JAX" in said) == (4, True)


def test_dates_are_inputs(files):
    code, _, said = files("fit dates.parquet -t y")
    assert code == 0
    assert "column 'x' holds dates: one input for days" in said


def test_interruption(files, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(nngp.NNGPRegressor, "fit", interrupted)
    code, _, said = files("fit fine.csv -t y -o new.nngp")
    assert code == 130
    assert "nothing was written" in said
    assert not Path("new.nngp").exists()


def test_one_row_has_no_variance(files):
    """What cannot be computed is null in JSON, not a word that JSON does not know."""
    Path("one.csv").write_text("x,y\n1,2\n")
    code, out, _ = files("evaluate good.nngp one.csv --json")
    assert code == 0
    assert json.loads(out, parse_constant=pytest.fail)["r2"] is None


def test_the_file_named_is_the_file_read(files):
    Path("data1.csv").write_text("x,y\n1,1\n2,2\n3,3\n")
    Path("data[1].csv").write_text("x,z\n1,1\n2,2\n3,3\n")
    assert files("fit data[1].csv -t z")[0] == 0


def test_codes_that_look_like_numbers(files):
    """Text in training is text in prediction, and labels are as they were."""
    rows = "".join(f"{c},{k}\n" for c, k in zip(["01", "02", "A1"] * 5, "12x" * 5, strict=True))
    Path("codes.csv").write_text("c,k\n" + rows)
    files("fit codes.csv -t k")
    Path("new.csv").write_text("c,k\n01,1\n02,2\n")
    code, out, said = files("predict model.nngp new.csv")
    assert "training did not" not in said
    assert [line.split(",")[0] for line in out.splitlines()] == ["k", "1", "2"]
    code, out, _ = files("evaluate model.nngp new.csv --json")
    assert (code, json.loads(out)["accuracy"]) == (0, 1.0)


def test_semicolons_and_dates(files):
    Path("semi.csv").write_text("x;day;y\n1,5;2024-01-01;2\n2,5;2024-01-02;3\n3,5;2024-02-01;5\n")
    code, _, said = files("fit semi.csv -t y")
    assert code == 0
    assert "separated by semicolons" in said
    assert "column 'day' holds dates: one input for days, time of week" in said


def test_a_target_of_any_name(files):
    Path("names.csv").write_text("x,std\n1,2\n2,3\n3,5\n")
    files("fit names.csv -t std")
    _, out, _ = files("predict model.nngp names.csv")
    assert out.splitlines()[0] == "std,std_std,std_lower,std_upper"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,3\n")
    words = [sys.executable, "-u", "-m", "nngp", "kernel", str(tmp_path / "t.csv")]
    told = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told.stdout.close()
    said = told.stderr.read()
    told.stderr.close()
    assert (told.wait(), said) == (0, "")


def test_excel_in_and_out(run):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    houses(40).write_excel("train.xlsx")
    houses(40).write_csv("train.csv")
    assert run("fit train.xlsx -t price --drop dear --selection none -o excel.nngp")[0] == 0
    assert run("fit train.csv -t price --drop dear --selection none -o csv.nngp")[0] == 0
    new = houses(10, seed=1)
    new.write_csv("new.csv")
    assert run("predict excel.nngp new.csv -o out.xlsx")[0] == 0
    assert run("predict csv.nngp new.csv -o out.csv")[0] == 0
    np.testing.assert_allclose(
        pl.read_excel("out.xlsx")["price"], pl.read_csv("out.csv")["price"], rtol=1e-9
    )


def test_scores_come_first_and_say_how_they_were_estimated(run):
    houses(60).write_csv("train.csv")
    _, out, _ = run("fit train.csv -t price --drop dear --selection none")
    names = [line.split()[0] for line in out.splitlines() if line]
    assert names[1:6] == ["task", "rows", "RMSE", "R²", "coverage"]
    assert names.index("estimated") < names.index("activation")
    assert "each of 60 rows predicted from the others; so few rows" in " ".join(out.split())
    shown = json.loads(run("fit train.csv -t price --drop dear --selection none --json")[1])
    model = nngp.load("model.nngp")
    error = houses(60)["price"].to_numpy() - model.left_out().mean()[:, 0]
    assert shown["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)


@pytest.mark.parametrize("target", ["price", "dear"])
def test_a_report_and_its_pictures(run, target):
    """The page is whole (nothing is loaded), escapes names, and shows the scores of `fit`."""
    drop = "dear" if target == "price" else "price"
    table = houses(60).rename({"rooms": "<rooms & halls>"})
    table.write_csv("train.csv")
    words = f"fit train.csv -t {target} --drop {drop} --selection none --report fit.html --json"
    code, out, said = run(words)
    assert (code, "report written to fit.html" in said) == (0, True)
    page, scores = Path("fit.html").read_text("utf-8"), json.loads(out)
    assert not re.search(r"src=|href=|<script|@import|url\(", page)
    assert "<rooms" not in page
    assert "&lt;rooms &amp; halls&gt;" in page
    score = f"{scores['r2']:.3f}" if target == "price" else f"{scores['accuracy']:.1%}"
    assert f"<b>{score}</b>" in page
    for part in ("alibration", "Partial dependence", "Worst rows", "What was chosen"):
        assert part in page
    houses(30, seed=1).rename({"rooms": "<rooms & halls>"}).write_csv("new.csv")
    assert run("plot model.nngp new.csv -o new.html")[0] == 0
    assert "30 rows that were not fitted" in Path("new.html").read_text("utf-8")
    pytest.importorskip("matplotlib")
    assert run("plot model.nngp new.csv")[0] == 0
    assert Path("model.png").stat().st_size > 5000


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_table_without_signal_is_said_to_have_none(run, kind):
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=80), rng.normal(size=80)
    for signal, said_so in ((0.0, True), (5.0, False)):
        y = signal * x + 0.3 * noise
        target = y if kind == "numbers" else np.where(y > 0, "yes", "no")
        pl.DataFrame({"x": x, "y": target}).write_csv("t.csv")
        said = run(f"fit t.csv -t y --selection none -o {signal}.nngp")[2]
        assert ("the columns hardly predict the target" in said) == said_so
