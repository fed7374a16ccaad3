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
# # Functions drawn from the prior
# Before it has seen any data, a network of infinite width is a distribution over functions. Draw
# some of them, and see what activation, depth and variances assume about your data.

# %% [markdown]
# `nngp.sample_prior` draws whole functions: values at all inputs at once, with the right covariance
# between them. No network is built and no weight is drawn. These are the limits of networks with
# random weights as their layers become wide.
#
# ## On a line
# The simplest input is one number. Draw five functions each from four networks.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

import nngp

# The kernel of step is known to 2e-8 only where inputs nearly coincide; no eye sees that.
warnings.simplefilter("ignore", nngp.errors.ToleranceWarning)

x = np.linspace(-4, 4, 301)

figure, panels = plt.subplots(2, 2, sharex=True, figsize=(7, 4.4))
networks = {
    "relu, 1 layer": nngp.Architecture(1, "relu", weight_var=2.0, bias_var=1.0),
    "relu, 10 layers": nngp.Architecture(10, "relu", weight_var=2.0, bias_var=1.0),
    "erf, 1 layer": nngp.Architecture(1, "erf", weight_var=[20.0, 2.0], bias_var=[10.0, 0.1]),
    "step, 1 layer": nngp.Architecture(1, "step", weight_var=[2.0, 2.0], bias_var=[2.0, 0.1]),
}
for panel, (title, net) in zip(panels.flat, networks.items(), strict=True):
    panel.plot(x, nngp.sample_prior(net, x[:, None], 5, seed=1).T)
    panel.set_title(title)
for panel in panels[1]:
    panel.set_xlabel("input")
plt.show()

# %% [markdown]
# - **relu** looks like straight lines that bend near zero, where its units switch on and off. Far
#   out every draw is a straight line: a relu network extrapolates linearly, with a standard
#   deviation that grows with the distance.
# - **Ten layers** spread the bends over the whole range. Each draw still ends in straight lines.
# - **erf** saturates. Far out every draw becomes a constant, and its variance stays bounded.
# - **step** jumps. Infinitely many small jumps make draws that are continuous and nowhere smooth,
#   as rough as Brownian motion.
#
# None of these is stationary: how a function behaves depends on how far from zero the input is.
# That is the main difference to the kernels that are popular elsewhere. Standardise your columns,
# so that zero means the centre of the data. The picture below shows the standard deviation of the
# prior and the typical slope of a draw, both relative to their values at zero.

# %% tags=["hide-input"]
far = np.linspace(-8, 8, 321)
figure, panels = plt.subplots(1, 2, figsize=(7, 3.2))
lines = ("#1f5fa8", "#5b6770", "#d9622b", "#3b8f5a")
for (title, net), colour in zip(networks.items(), lines, strict=True):
    std = np.sqrt(nngp.kernel_diag(net, far[:, None]))
    panels[0].plot(far, std / std[160], color=colour)
    if "step" not in title:  # its draws have no slope
        draws = nngp.sample_prior(net, far[:, None], 400, seed=0)
        slope = np.sqrt(np.mean(np.gradient(draws, far, axis=1) ** 2, axis=0))
        panels[1].plot(far, slope / slope[160], color=colour)
panels[0].set(title="standard deviation of the prior", xlabel="input")
panels[1].set(title="slope of a draw", xlabel="input", ylim=(0, None))
panels[0].text(5.2, 6.2, "relu, 1 layer", color="#1f5fa8", ha="right")
panels[0].text(8, 2.5, "10 layers", color="#5b6770", ha="right", va="top")
panels[0].text(8, 1.3, "erf, step", color="#d9622b", ha="right")
panels[1].text(2.4, 0.25, "erf", color="#d9622b")
panels[1].text(8, 0.97, "relu, 1 layer", color="#1f5fa8", ha="right", va="top")
panels[1].text(8, 1.13, "10 layers", color="#5b6770", ha="right")
plt.show()

# %% [markdown]
# ## On a circle: order and chaos
# To see what depth does, keep the norm of the inputs fixed. On a circle only the angle matters. The
# three rows are erf networks with growing weight variance: ordered, critical, chaotic.

# %% tags=["thumbnail", "hide-input"]
angle = np.linspace(0, 2 * np.pi, 500)
circle = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])  # x·x/d = 1
critical = nngp.regimes.critical_line("erf", 0.05)
rows = {"ordered": 0.7, "critical": critical, "chaotic": 6.0}
depths = (1, 5, 20)

figure, panels = plt.subplots(3, 3, sharex=True, figsize=(7, 4.5))
colours = plt.get_cmap("plasma")(np.linspace(0.05, 0.8, 4))
for row, (name, weight_var) in zip(panels, rows.items(), strict=True):
    for panel, depth in zip(row, depths, strict=True):
        net = nngp.Architecture(depth, "erf", weight_var, bias_var=0.05)
        draws = nngp.sample_prior(net, circle, 4, seed=3)
        draws /= np.sqrt(nngp.kernel_diag(net, circle[:1]))
        for draw, colour in zip(draws, colours, strict=True):
            panel.plot(np.degrees(angle), draw, color=colour, lw=1.1)
        panel.set(ylim=(-3, 3), xticks=[0, 180, 360], yticks=[-2, 0, 2])
    row[0].set_ylabel(name)
for panel, depth in zip(panels[0], depths, strict=True):
    panel.set_title(f"{depth} layer{'s' if depth > 1 else ''}")
panels[2, 1].set_xlabel("direction of the input (degrees)")
plt.show()

# %% [markdown]
# Draws are scaled to unit variance. Order ends in constants, chaos in white noise. Near the
# critical line depth changes the functions slowly. The same story in numbers, and for data: [what
# depth does](what_depth_does.py).
#
# ## On a plane
# With two inputs a draw is a landscape. All four panels are one draw each, with the same random
# numbers; red is high and blue is low.

# %% tags=["hide-input"]
side = np.linspace(-2.5, 2.5, 44)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
landscapes = {
    "relu, 1 layer": nngp.Architecture(1, "relu", [2.0, 2.0], [1.0, 0.0]),
    "erf, 1 layer": nngp.Architecture(1, "erf", [20.0, 2.0], [10.0, 0.0]),
    "erf, 4 layers, chaotic": nngp.Architecture(4, "erf", 5.0, 0.2),
    "step, 1 layer": nngp.Architecture(1, "step", [2.0, 2.0], [2.0, 0.0]),
}
figure, panels = plt.subplots(2, 2, figsize=(5.4, 4.5))
for panel, (title, net) in zip(panels.flat, landscapes.items(), strict=True):
    draw = nngp.sample_prior(net, plane, 1, seed=5)[0].reshape(len(side), -1)
    draw = (draw - draw.mean()) / draw.std()
    panel.imshow(draw, cmap="RdBu_r", vmin=-2.2, vmax=2.2, origin="lower", interpolation="bilinear")
    panel.contour(draw, levels=np.arange(-2, 2.1, 0.5), colors="black", linewidths=0.4, alpha=0.6)
    panel.set(title=title, xticks=[], yticks=[])
plt.show()

# %% [markdown]
# All four have their structure at the centre, where units switch. Far out relu becomes flat facets,
# and erf becomes rays: nearly constant along each direction. That is what not stationary means.
#
# ## On a sphere
# Inputs of equal norm in three dimensions are a sphere. There the kernel depends on the angle
# alone, so draws look alike everywhere: on a sphere these networks *are* stationary.

# %% tags=["hide-input"]
SIZE = 46
latitude, longitude = np.linspace(-np.pi / 2, np.pi / 2, SIZE), np.linspace(0, np.pi, SIZE)
lat, lon = np.meshgrid(latitude, longitude, indexing="ij")
globe = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
points = np.sqrt(3) * globe.reshape(-1, 3)
seen = np.cos(lat) * np.cos(lon), np.sin(lat)  # looked at along the second axis

figure, panels = plt.subplots(1, 3, figsize=(7, 2.7))
spheres = {
    "relu, 3 layers": nngp.Architecture(3, "relu", 2.0, 0.0),
    "erf, 3 layers, critical": nngp.Architecture(3, "erf", critical, 0.05),
    "erf, 6 layers, chaotic": nngp.Architecture(6, "erf", 6.0, 0.05),
}
for panel, (title, net) in zip(panels, spheres.items(), strict=True):
    draw = nngp.sample_prior(net, points, 1, seed=2)[0].reshape(SIZE, SIZE)
    draw = (draw - draw.mean()) / draw.std()
    panel.pcolormesh(
        *seen, draw, cmap="RdBu_r", vmin=-2.2, vmax=2.2, shading="gouraud", rasterized=True
    )
    panel.set(title=title, aspect="equal")
    panel.axis("off")
plt.show()

# %% [markdown]
# ## What this means for data
# | you believe | take |
# |---|---|
# | trends continue outside the data | relu and its relatives |
# | outside the data nothing is known, but values stay in a range | erf, tanh |
# | the function changes a lot over short distances | larger weight variance, a few layers |
# | the function is smooth or nearly linear | small weight variance |
# | only directions matter, not lengths | `nngp.normalize` |
#
# You need not decide by taste. The evidence of your data chooses: [evidence and
# validation](evidence_and_validation.py). `nngp.NNGPRegressor()` does that by default.
