"""A network, its training inputs, and the resources to solve with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nngp.architecture import Network
from nngp.gram import Inputs, InputSet, KernelMatrix, KernelSplit
from nngp.linsolve import Engine
from nngp.posterior.resources import Resources


@dataclass(frozen=True)
class Problem:
    """The left side of (K + noise) α = Y, and where it is solved."""

    network: Network
    inputs: InputSet
    resources: Resources

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    def matrix(self, split: KernelSplit | None = None) -> KernelMatrix:
        """The kernel matrix of the training inputs."""
        with self.engine.run():  # device arrays made here are the engine's
            return self.engine.kernels.matrix(self.network, self.inputs, split=split)

    def to_rows(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix between other inputs and the training inputs."""
        kernels = self.engine.kernels
        return kernels.matrix(self.network, test, self.inputs, split=split)

    def among(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix of other inputs."""
        return self.engine.kernels.matrix(self.network, test, split=split)

    def upload(self, test: Inputs) -> InputSet:
        """Other inputs, where the engine computes."""
        return self.engine.kernels.test_inputs(test)

    def test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        """Other inputs, checked; raises ValueError if the training inputs were changed since."""
        self.inputs.check_unchanged()
        test = Inputs.of(Xs, name)
        wanted = self.inputs.shape[1]
        if test.X.shape[1] != wanted:
            hint = f"; for one point pass {name}[None]" if np.ndim(Xs) == 1 else ""
            raise ValueError(
                f"{name} has {test.X.shape[1]} features and the training inputs have {wanted}{hint}"
            )
        return test
