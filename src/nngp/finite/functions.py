"""A network of finite width as pure functions of its weights, for programs that train it.

`NetworkFunctions` is hashable, so it can be a static argument of `jax.jit`; it holds no variances,
so networks that differ in them share compiled programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nngp._arrays import DeviceArray
from nngp.architecture.graph import Affine
from nngp.finite.layout import UnitLayout
from nngp.finite.weights import (
    Layer,
    draw_masks,
    forward,
    layers_from,
    map_inputs,
    node_values,
)


@dataclass(frozen=True)
class NetworkFunctions:
    """Weights and outputs of one network as functions that JAX can trace, from
    `FiniteNetwork.functions`.

    Examples
    --------
    >>> import jax, nngp
    >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
    >>> functions = network.functions(d=3)
    >>> functions.sizes, functions.n_weights
    ((3, 50, 50, 1), 2801)
    >>> normals = jax.random.normal(jax.random.key(0), (functions.n_weights,))
    >>> weights = functions.weights(normals, [1.5] * 3, [0.1] * 3)
    >>> functions.forward(weights, jax.numpy.ones((4, 3))).shape
    (4, 1)
    """

    layout: UnitLayout

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features, then the fan-out of each affine map."""
        return self.layout.sizes

    @property
    def n_weights(self) -> int:
        """Weights and biases of one network."""
        return self.layout.n_weights

    def weights(
        self, normals: DeviceArray, weight_vars: DeviceArray, bias_vars: DeviceArray
    ) -> list[Layer]:
        """Cut `n_weights` standard normal numbers into the affine maps of one network, and scale
        them by its variances, of which there is one for each map.

        Examples
        --------
        >>> import jax.numpy as jnp, nngp
        >>> functions = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), width=5).functions(d=2)
        >>> ones = jnp.ones(functions.n_weights)
        >>> [layer["w"].shape for layer in functions.weights(ones, [1.0, 1.0], [0.0, 0.0])]
        [(2, 5), (5, 1)]
        """
        return layers_from(self.layout.shapes, normals, weight_vars, bias_vars)

    def forward(
        self, weights: Sequence[Layer], X: DeviceArray, masks_key: DeviceArray | None = None
    ) -> DeviceArray:
        """Outputs for inputs in rows. Without a key dropout is left out; with one its masks are
        drawn from it.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, nngp
        >>> net = nngp.Chain(nngp.Dense(1.0), nngp.Act("relu"), nngp.Dropout(0.5), nngp.Dense(1.0))
        >>> functions = nngp.FiniteNetwork(net, width=5).functions(d=2)
        >>> ones = jnp.ones(functions.n_weights)
        >>> weights = functions.weights(ones, [1.0, 1.0], [0.0, 0.0])
        >>> functions.forward(weights, jnp.ones((3, 2)), jax.random.key(0)).shape
        (3, 1)
        """
        return forward(self.layout, weights, X, self._masks(masks_key, X))

    def last_hidden(
        self, weights: Sequence[Layer], X: DeviceArray, masks_key: DeviceArray | None = None
    ) -> DeviceArray:
        """Compute what goes into the last affine map, (n, units): the features on which the outputs
        are linear. Raises ValueError for a network that does not end in an affine map.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, nngp
        >>> functions = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), width=5).functions(d=2)
        >>> weights = functions.weights(jnp.ones(functions.n_weights), [1.0, 1.0], [0.0, 0.0])
        >>> functions.last_hidden(weights, jnp.ones((3, 2))).shape
        (3, 5)
        """
        if not isinstance(self.layout.graph[-1], Affine):
            raise ValueError(
                "this network does not end in one affine map, so it has no last layer; add "
                "nngp.Dense(1.0, 0.0) at its end"
            )
        values = node_values(self.layout, weights, X, self._masks(masks_key, X))
        return map_inputs(self.layout, values)[-1]

    def _masks(self, key: DeviceArray | None, X: DeviceArray) -> dict[int, DeviceArray] | None:
        dropped = key is not None and self.layout.has_masks
        return draw_masks(self.layout, key, len(X)) if dropped else None
