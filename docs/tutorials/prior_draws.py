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
# some of them, and see what activation and depth mean.

# %%
import matplotlib.pyplot as plt
import numpy as np

import nngp

angle = np.linspace(0, 2 * np.pi, 300)
circle = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])  # x·x/d = 1

figure, panels = plt.subplots(2, 3, sharex=True, figsize=(7, 4))
for row, activation in zip(panels, ("relu", "erf"), strict=True):
    for panel, depth in zip(row, (1, 3, 10), strict=True):
        net = nngp.Architecture(depth, activation, weight_var=3.0, bias_var=0.1)
        draws = nngp.sample_prior(net, circle, 4, seed=0)
        panel.plot(np.degrees(angle), draws.T)
        panel.set_title(f"{activation}, depth {depth}")
plt.show()
