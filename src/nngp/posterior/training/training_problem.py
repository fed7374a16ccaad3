"""Networks, data, and what training needs of them, each computed when it is first asked for."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._progress import Callback
from nngp.architecture import Network, tangent_of
from nngp.architecture.graph import Affine
from nngp.gram import Inputs, InputSet, inputs_diag, kernel
from nngp.linsolve import CG, CpuEngine, Engine
from nngp.posterior.condition import condition
from nngp.posterior.noise import Noise, as_noise
from nngp.posterior.setup import Problem, Resources, as_targets, kernels_of
from nngp.posterior.training.converged import Converged
from nngp.posterior.training.descent import Descent


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """The arguments of `nngp.training.train_ensemble` but for the time, checked."""

    network: Network
    X: ArrayLike
    inputs: InputSet
    targets: Array
    single: bool
    learning_rate: float
    noise: Noise
    solver: str | CG
    engine: str | Engine
    memory: int | None
    progress: Callback | bool | None
    layers: str = "all"  # that are trained

    @classmethod
    def of(
        cls,
        network: Network,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        learning_rate: float,
        noise_var: float,
        relative_noise: bool,
        solver: str | CG,
        engine: str | Engine,
        memory: int | None,
        progress: Callback | bool | None,
        layers: str,
    ) -> "TrainingProblem":
        tangent = tangent_of_layers(network, layers)
        inputs = kernels_of(engine).inputs(X)
        targets, single = as_targets(Y, len(inputs))
        noise = Noise.of(as_noise(noise_var), relative_noise, tangent, inputs)
        kept = inputs.X if isinstance(inputs, Inputs) else X
        return cls(
            network,
            kept,
            inputs,
            targets,
            single,
            learning_rate,
            noise,
            solver,
            engine,
            memory,
            progress,
            layers,
        )

    @property
    def tangent_network(self) -> Network:
        """The network whose kernel is Θ."""
        return tangent_of_layers(self.network, self.layers)

    @property
    def noise_var(self) -> float:
        """As a variance of the targets."""
        return self.noise.least

    @property
    def target_noise(self) -> float:
        """The variance of noise that each network's targets have: so the last layer, trained for
        ever, gives draws from the posterior (Matthews et al. 2017)."""
        return self.noise_var if self.layers == "last" else 0.0

    @property
    def kernel_scale(self) -> float:
        """The scale of the rounding errors of a covariance."""
        return self.prior.matrix().split.scale

    @property
    def tangent(self) -> Problem:
        """Θ, on this machine."""
        return Problem(self.tangent_network, self.inputs, self._here)

    @property
    def prior(self) -> Problem:
        """K, on this machine."""
        return Problem(self.network, self.inputs, self._here)

    def prior_variance(self, test: Inputs) -> Array:
        """K(x, x) of test points."""
        return inputs_diag(self.network, test)

    def prior_covariance(self, test: Inputs) -> Array:
        """K between test points."""
        return kernel(self.network, test.X)

    @property
    def _here(self) -> Resources:
        return Resources(CpuEngine(), self.memory, self.progress)

    @cached_property
    def descent(self) -> Descent:
        """Training for finite times."""
        rate = self.learning_rate / self.targets.size
        noises = self.noise_var, self.target_noise
        return Descent.of(self.prior, self.tangent, self.targets, rate, *noises)

    @cached_property
    def converged(self) -> Converged:
        """Training for ever."""
        posterior = condition(
            self.tangent_network,
            self.X,
            self.targets,
            noise_var=float(np.min(self.noise.stated)),
            relative_noise=self.noise.input_var is not None,
            solver=self.solver,
            engine=self.engine,
            memory=self.memory,
            progress=self.progress,
        )
        problem = posterior.problem
        prior = Problem(self.network, problem.inputs, problem.resources)
        return Converged(prior, posterior, self.target_noise)


def tangent_of_layers(network: Network, layers: str) -> Network:
    """The network whose kernel is the tangent kernel of the layers that are trained: of the last
    alone, whose inputs do not move, that is the covariance itself."""
    if layers not in ("all", "last"):
        raise ValueError(f"layers must be 'all' or 'last', got {layers!r}")
    if layers == "all":
        return tangent_of(network)
    if not network.is_infinite and not isinstance(network.base.graph[-1], Affine):
        raise ValueError(
            "layers='last' trains the affine map that gives the outputs, and this network does not "
            "end in one; add nngp.Dense(1.0, 0.0) at its end"
        )
    return network
