import numpy as np
import torch
from botorch.models.kernels import InfiniteWidthBNNKernel

torch.set_default_dtype(torch.float64)
X = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 4)))

for depth in (1, 3, 10):
    kernel = InfiniteWidthBNNKernel(depth=depth)
    kernel.weight_var = 1.6
    kernel.bias_var = 0.1
    K = kernel(X).to_dense().detach()
    print(f"depth {depth}", K[0].tolist())
