"""Load a saved estimator."""

import os

from nngp._progress import Callback
from nngp._records import reading
from nngp.estimators.classifier import NNGPClassifier
from nngp.estimators.regressor import NNGPRegressor
from nngp.estimators.saved import SavedModel, read_model
from nngp.linsolve import Engine, choose_engine

KINDS: dict[str, type[NNGPRegressor] | type[NNGPClassifier]] = {
    kind._kind: kind for kind in (NNGPRegressor, NNGPClassifier)
}


def load(
    path: str | os.PathLike[str],
    *,
    engine: str | Engine = "auto",
    progress: Callback | bool | None = None,
) -> NNGPRegressor | NNGPClassifier:
    """Load a fitted estimator from a file written by its `save` method.

    The Cholesky factor is mapped, and read when something first needs it: replacing or deleting
    the file meanwhile is safe, writing into it is not.

    Parameters
    ----------
    path : path
    engine : {"auto", "cpu", "gpu"} or engine
        Where to compute from now on; need not be where it was fitted.
    progress : callable or bool, optional
        As in `nngp.condition`; a file saved without its factor takes a while to load.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, or has another format than this version writes.

    Examples
    --------
    >>> import nngp, numpy as np
    >>> model = nngp.NNGPRegressor(selection=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> model.save("model.nngp")
    >>> bool(np.all(nngp.load("model.nngp").predict([[1.5]]) == model.predict([[1.5]])))
    True
    """
    choose_engine(engine, 0)  # raises for a wrong name before the file is blamed
    return restored(path, read_model(path), engine, progress)


def restored(
    path: str | os.PathLike[str],
    saved: SavedModel,
    engine: str | Engine,
    progress: Callback | bool | None,
) -> NNGPRegressor | NNGPClassifier:
    """Restore an estimator that was read from a file."""
    with reading(path):
        return KINDS[saved.kind]._loaded(saved, engine, progress)
