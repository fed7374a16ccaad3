# ---
# jupytext:
#   text_representation:
#     extension: .py
#     format_name: percent
# kernelspec:
#   name: python3
#   display_name: Python 3
# ---

# %% [markdown]
# # A cluster, and a million points
# When a Cholesky factor does not fit, there are two ways on: let many machines hold it, or do
# without it. Dask does the first, conjugate gradients do the second, up to a million points on one
# GPU.

# %%
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import LocalCluster, get_task_stream
from sklearn.datasets import load_digits

import nngp

pixels, labels = load_digits(return_X_y=True)
images = pixels.reshape(-1, 8, 8)
both = np.concatenate([images, np.roll(images, 1, axis=2)])  # and each moved by a pixel
order = np.random.default_rng(0).permutation(len(both))
X = nngp.normalize(both.reshape(-1, 64))[order]
Y = (np.eye(10)[np.tile(labels, 2)] - 0.1)[order]
train, test = slice(0, 2500), slice(2500, None)
net = nngp.Architecture(depth=3, activation="relu", weight_var=1.6, bias_var=0.1)

# %% [markdown]
# ## Conjugate gradients
# The mean needs one solution of $(K + \sigma^2 I)\,\alpha = y$. Conjugate gradients find it by
# products of the matrix with vectors. Tiles of $K$ are kept as far as memory goes and computed
# again in every iteration otherwise, so memory is no limit. The residual is recomputed at the
# end: you get the tolerance that you asked for, or an error.
#
# How many iterations it takes depends on the *preconditioner*, a cheap stand-in for the inverse.
# There are two. Nyström takes some points to stand for all (`rank` of them). The other is a
# Cholesky factor in float32, with half of the memory of the real one. A callback for `progress`
# shows what happens.

# %%
solvers = {
    "30 points": nngp.CG(rank=30),
    "150 points": nngp.CG(rank=150),
    "600 points": nngp.CG(rank=600),
    "float32 factor": nngp.CG(preconditioner="single"),
}
residuals, means = {}, {}
for name, solver in solvers.items():
    steps = []
    posterior = nngp.condition(
        net, X[train], Y[train], noise_var=1e-2, engine="cpu", solver=solver, progress=steps.append
    )
    words = [step.message for step in steps if step.phase == "cg" and step.message]
    residuals[name] = [1.0] + [float(word.removeprefix("residual ")) for word in words]
    means[name] = posterior.mean(X[test])
    report = posterior.report
    print(
        f"{name:14} {report.iterations:3} iterations, {sum(report.seconds.values()):4.1f} s", end=""
    )
    print(f", residual {report.residual:.0e}")

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3.8))
heights = (2.5e-9, 2.5e-9, 2.5e-9, 4e-10)
for number, (name, values) in enumerate(residuals.items()):
    axes.semilogy(values, "o-", ms=2.5, color=f"C{number}")
    place = max(len(values) - 1, 9)
    axes.text(place, heights[number], name, color=f"C{number}", ha="center", va="top")
axes.axhline(1e-8, color="0.4", lw=0.8, ls="--")
axes.text(75, 1.3e-8, "tolerance", color="0.4", ha="center", va="bottom")
axes.set(xlabel="iteration", ylabel="relative residual", ylim=(4e-11, 20))
plt.show()

# %% [markdown]
# A better preconditioner costs more to make and saves iterations. With neither `rank` nor
# `preconditioner` the library weighs the two, from the speed of this machine and the noise.
#
# The answers are those of the factor. What is lost is what only a factor gives:

# %%
exact = nngp.condition(net, X[train], Y[train], noise_var=1e-2, engine="cpu", solver="cholesky")
for name, mean in means.items():
    print(f"{name:14} largest difference of means: {abs(mean - exact.mean(X[test])).max():.0e}")
try:
    print(posterior.log_evidence)
except nngp.errors.NoFactorError as error:
    print(error)

# %% [markdown]
# Small noise makes the system harder. Then the iteration may stop short, and says so:

# %%
try:
    hard = nngp.CG(rank=30, max_iterations=50)
    nngp.condition(net, X[train], Y[train], noise_var=1e-8, engine="cpu", solver=hard)
except nngp.errors.NotConvergedError as error:
    print(error)

# %% [markdown]
# ## Up to a million points
# The records of `python benchmarks/cg.py` on one H200: images of 784 pixels, MNIST and moved and
# noisy copies of it, ten outputs, relu with three layers, noise 0.01.

# %%
results = Path("../../benchmarks/results")
records = [json.loads(line) for line in (results / "cg.jsonl").read_text().splitlines()]
records = [
    record
    for record in records
    if "iterations" in record and record["noise"] == 0.01 and not record.get("xla_flags")
]
print("      n  preconditioner   iterations  tolerance  seconds  an iteration  tiles kept")
for record in sorted(records, key=lambda record: record["n"]):
    kind = f"{record['rank']:,} points" if record["rank"] else "float32 factor"
    print(
        f"{record['n']:9,}  {kind:15} {record['iterations']:8} {record['tolerance']:11.0e}", end=""
    )
    print(f"{record['seconds_total']:9.1f} {record['seconds_per_iteration']:10.2f} s", end="")
    print(f"{100 * record['kept']:12.1f}%")

# %% tags=["thumbnail", "hide-input"]
direct = {
    record["n"]: record["seconds_cholesky"] for record in records if "seconds_cholesky" in record
}
large = json.loads((results / "images180k_gpu.json").read_text())
direct[large["n"]] = large["runs"][1]["seconds_condition"]
kinds = {"nystrom": ("C0", "o"), "single": ("C1", "s")}
figure, axes = plt.subplots(figsize=(6, 4.2))
n = np.geomspace(5e4, 1.5e6, 30)
axes.plot(n, 8.2 * (n / 1e5) ** 3, color="C2", lw=0.8, ls=":")
axes.plot(n, 114 * (n / 3e5) ** 2, color="C0", lw=0.8, ls=":")
axes.plot(*zip(*sorted(direct.items()), strict=True), "D", color="C2", ms=7)
for record in sorted(records, key=lambda record: record["preconditioner"], reverse=True):
    colour, marker = kinds[record["preconditioner"]]
    filled = record["tolerance"] < 1e-6
    axes.plot(
        record["n"],
        record["seconds_total"],
        marker,
        ms=8,
        color=colour,
        mfc=colour if filled else "white",
        mew=1.6,
    )
axes.annotate("n³", (4.5e5, 8.2 * 4.5**3), (5, -12), textcoords="offset points", color="C2")
axes.annotate("n²", (5.5e5, 114 * (5.5 / 3) ** 2), (7, -10), textcoords="offset points", color="C0")
axes.text(1.1e5, 5.2, "Cholesky", color="C2")
axes.text(3.3e5, 66, "CG, points", color="C0")
axes.text(1.85e5, 175, "CG, float32 factor", color="C1", ha="right")
axes.text(1e6, 350, "a million,\nresidual 0.01", color="C0", ha="center", va="top", fontsize=8)
axes.axvspan(1.86e5, 2e6, color="0.6", alpha=0.12, lw=0)
axes.text(1.4e6, 1.6, "no float64 factor fits into this GPU", color="0.4", ha="right", fontsize=8)
axes.set(xscale="log", yscale="log", xlim=(5e4, 1.5e6), ylim=(1.2, 2500))
axes.set(xlabel="training points n", ylabel="seconds of condition")
axes.set_xticks([1e5, 1e6], ["100,000", "1,000,000"])
axes.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
plt.show()

# %% [markdown]
# Filled marks reached a residual of 1e-8. The million was stopped at 0.01, as each iteration takes
# 22 s; 1e-8 was not tried. Marks of CG from 100,000 points on include compiling; those at 60,000
# and the factor's do not.
#
# While the factor fits, it is the better choice: at least as fast, and it gives variances at once,
# and the evidence. Beyond, the number of iterations hardly grows, as more points stand for all,
# and each iteration takes of the order of $n^2$ operations. That is the whole secret of the
# million.
#
# ## A cluster
# The other way is to spread the tiles. Here are two worker processes on the machine that builds
# this page. On a real cluster only the line with `LocalCluster` changes.

# %%
cluster = LocalCluster(
    n_workers=2,
    threads_per_worker=1,
    memory_limit="2GB",
    dashboard_address=None,
    silence_logs=50,
)
engine = nngp.DaskEngine(cluster, tile=320)
with get_task_stream(engine.client) as stream:
    spread = nngp.condition(net, X[train], Y[train], noise_var=1e-2, engine=engine)
difference = abs(spread.mean(X[test]) - exact.mean(X[test])).max()
print(f"largest difference from one machine: {difference:.0e}")
print({name: spread.report.cluster[name] for name in ("workers", "chains", "computed_again")})

# %% [markdown]
# A *chain* is mostly the computation of one tile of the factor: its entries of the kernel, what
# tiles to the left subtract from it, and its own factor or solve. Dask's task stream shows who did
# what when.

# %% tags=["hide-input"]
start = min(part["start"] for task in stream.data for part in task["startstops"])
workers = sorted({task["worker"] for task in stream.data})
figure, axes = plt.subplots(figsize=(7, 2.3))
for task in stream.data:
    row = workers.index(task["worker"])
    for part in task["startstops"]:
        moves = part["action"] != "compute"
        span = [(part["start"] - start, part["stop"] - part["start"])]
        place = (row - 0.42, 0.14) if moves else (row - 0.25, 0.6)
        axes.broken_barh(span, place, color="C1" if moves else f"C{2 * row}", ec="white", lw=0.3)
axes.set_yticks(range(len(workers)), [f"worker {row + 1}" for row in range(len(workers))])
axes.set(xlabel="seconds", ylim=(-0.55, 1.45))
axes.set_title("wide bars: tiles being computed; narrow: tiles fetched from the other worker")
axes.grid(axis="y", visible=False)
plt.show()

# %% [markdown]
# With a **store**, each finished tile is a file. The same call finds them, after whatever death of
# client, scheduler or workers. Here the second call is such a second start.

# %%
with (
    tempfile.TemporaryDirectory() as folder,
    nngp.DaskEngine(cluster, tile=320, store=folder) as keeping,
):
    for attempt in ("first", "second"):
        report = nngp.condition(net, X[train], Y[train], noise_var=1e-2, engine=keeping).report
        found = report.cluster["found_in_store"]
        print(f"{attempt:6} call: {found} tiles found, {report.seconds['factor']:.2f} s")
engine.close()
cluster.close()

# %% [markdown]
# ## What a cluster costs
# The records of `python benchmarks/distributed.py`: two worker processes against the local engine
# on the same two cores, so nothing is gained here, and what is left is the price.

# %% tags=["hide-input"]
runs = [json.loads(line) for line in (results / "distributed.jsonl").read_text().splitlines()]
groups = {
    "in memory": [r for r in runs if r["n"] == 8000 and not r["store"] and not r["killed"]],
    "one worker killed\nhalf-way": [r for r in runs if r["killed"]],
    "workers of 300 MB,\nspilling to disk": [r for r in runs if r["memory_limit"] == "300MB"],
    "with a store": [r for r in runs if r["store"]],
}
figure, axes = plt.subplots(figsize=(6, 2.9))
for row, some in enumerate(groups.values()):
    factors = [run["factor"] for run in some]
    axes.plot([1, np.median(factors)], [row, row], color="0.8", lw=2, zorder=1)
    axes.plot(factors, [row] * len(factors), "o", color=f"C{row}", ms=8, alpha=0.7)
    axes.text(max(factors) + 0.07, row, f"{np.median(factors):.1f} times", va="center")
axes.axvline(1, color="0.3", lw=1)
axes.set_yticks(range(len(groups)), groups)
axes.set_ylim(len(groups) - 0.6, -0.5)
axes.set(xlabel="time, relative to one process with two threads", xlim=(0.9, 3.2))
axes.grid(axis="y", visible=False)
plt.show()

# %% [markdown]
# No answer differed by more than rounding, whoever died. Is a cluster worth it? One machine with
# 16 GB holds 50,000 points and one large GPU 180,000. Take a cluster for more than that, for
# memory that no single machine has, or for many runs at once. One GPU is often the better cluster.
#
# [On a cluster](../guides/cluster.md) has SLURM, Kubernetes, settings and errors.
