"""A network, its training inputs, and the resources to solve with."""

from dataclasses import dataclass

from nngp.architecture import Architecture
from nngp.gram import Inputs, InputSet, KernelMatrix, KernelSplit
from nngp.linsolve import Engine
from nngp.posterior.resources import Resources


@dataclass(frozen=True)
class Problem:
    """The left side of (K + noise) α = Y, and where it is solved."""

    architecture: Architecture
    inputs: InputSet
    resources: Resources

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    def matrix(self, split: KernelSplit | None = None) -> KernelMatrix:
        """The kernel matrix of the training inputs."""
        with self.engine.run():  # device arrays made here are the engine's
            return self.engine.kernels.matrix(self.architecture, self.inputs, split=split)

    def to_rows(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix between other inputs and the training inputs."""
        kernels = self.engine.kernels
        return kernels.matrix(self.architecture, test, self.inputs, split=split)

    def among(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix of other inputs."""
        return self.engine.kernels.matrix(self.architecture, test, split=split)

    def upload(self, test: Inputs) -> InputSet:
        """Other inputs, where the engine computes."""
        return self.engine.kernels.test_inputs(test)
