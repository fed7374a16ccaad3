"""A fitted estimator in one file, without pickle, and back.

The file is a zip archive: `header.json` with all plain values and a format number, and one `.npy`
member for each array, stored as it is. Nothing in it is code. The archive has a checksum for each
member, so damage is noticed. It is written beside its place and then moved there.
"""

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from nngp._files import DAMAGED, replaced
from nngp.architecture import Activation, from_spec, spec_of
from nngp.errors import ModelFileError
from nngp.linsolve import CG, Engine, choose_engine
from nngp.posterior.serialize import arrays_of, header_of, restore
from nngp.predictors.classifier import NNGPClassifier
from nngp.predictors.estimator import NNGPEstimator
from nngp.predictors.regressor import NNGPRegressor
from nngp.predictors.scaling import InputScaling, TargetScaling
from nngp.predictors.search import as_column

FORMAT, VERSION = "nngp-model", 3
HEADER = "header.json"
# What reading a damaged archive can raise
UNREADABLE = (*DAMAGED, OSError)
KINDS = {"NNGPRegressor": NNGPRegressor, "NNGPClassifier": NNGPClassifier}


def save(
    model: NNGPEstimator, path: str | os.PathLike[str], *, factor: bool, notes: dict[str, Any]
) -> None:
    """Write a fitted model; an older file of that name stays until the new one is complete."""
    kind = type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise TypeError(f"{kind} is a class of your own; only {' and '.join(KINDS)} can be saved")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "params": _params(model),
        "fitted": _fitted(model),
        "notes": notes,
        "posterior": header_of(model.posterior_, factor=factor),
    }
    with replaced(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1, allow_nan=False))
        for name, array in chain(_arrays(model), arrays_of(model.posterior_, factor=factor)):
            _put(archive, name, array)


def load(
    path: str | os.PathLike[str], *, engine: str | Engine = "auto", progress: Any = None
) -> Any:
    """A fitted estimator from a file written by its `save` method.

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
        If the file is no model, is damaged, or was written by a later version.

    Examples
    --------
    >>> import nngp, numpy as np, tempfile, os
    >>> model = nngp.NNGPRegressor(selection=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.nngp")
    >>> model.save(path)
    >>> bool(np.all(nngp.load(path).predict([[1.5]]) == model.predict([[1.5]])))
    True
    """
    choose_engine(engine, 0)  # a wrong name is no fault of the file
    with _opened(path) as archive:
        header = _header(archive, path)

        def read(name: str) -> NDArray[Any]:
            with _noticing_damage(path, UNREADABLE):
                return _read(archive, f"{name}.npy")

        with _noticing_damage(path, (KeyError, TypeError)):
            return _rebuilt(header, read, engine, progress)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The plain values of a saved model, without loading its arrays."""
    with _opened(path) as archive:
        return _header(archive, path)


@contextmanager
def _noticing_damage(path: Any, kinds: tuple[type[Exception], ...]) -> Iterator[None]:
    """Errors of these kinds mean that the file is not what it was."""
    try:
        yield
    except ModelFileError:
        raise
    except kinds as cause:
        raise ModelFileError(
            f"{path} is damaged ({cause}); get a fresh copy or fit the model again"
        ) from cause


def _arrays(model: NNGPEstimator) -> Iterator[tuple[str, NDArray[Any]]]:
    """The estimator's own arrays by name."""
    yield "input_center", model._input_scaling.center
    yield "input_factor", model._input_scaling.factor
    yield "target_center", model._target_scaling.center
    yield "target_spread", model._target_scaling.spread
    yield "relevance", model._relevance
    if isinstance(model, NNGPClassifier):
        classes = model.classes_
        yield "classes", classes.astype(str) if classes.dtype == object else classes


def _put(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _read(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        return np.asarray(npy.read_array(member, allow_pickle=False))


def _params(model: NNGPEstimator) -> dict[str, Any]:
    """The parameters, but for those that are given to `load` (engine, progress)."""
    params = model.get_params(deep=False)
    for name in ("engine", "progress"):
        del params[name]
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None  # its state has moved on since
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Activation):
        return {"activation": spec_of(value)}
    if isinstance(value, CG):
        return {"cg": asdict(replace(value, checkpoint=None))}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    kind = "is a Python function, which" if callable(value) else "is no plain value and"
    raise ValueError(f"the parameter {value!r} {kind} cannot be written to a file")


def _fitted(model: NNGPEstimator) -> dict[str, Any]:
    out: dict[str, Any] = {
        "n_features_in": model.n_features_in_,
        "feature_names": None,
        "unit": model._input_scaling.unit,
        "constant": model._input_scaling.constant,
        "selection": {name: _plain(column.tolist()) for name, column in model.selection_.items()},
    }
    if hasattr(model, "feature_names_in_"):
        out["feature_names"] = [str(name) for name in model.feature_names_in_]
    if isinstance(model, NNGPClassifier):
        out["output_scale"] = model.output_scale_
        out["object_classes"] = model.classes_.dtype == object
        if out["object_classes"] and not all(isinstance(c, str) for c in model.classes_):
            raise ValueError("class labels that are neither text nor numbers cannot be saved")
    else:
        out["single"] = model._single
    return out


def _opened(path: str | os.PathLike[str]) -> zipfile.ZipFile:
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}; was the model saved there?")
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a saved model")
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError):  # the latter for a version that is none
        with file.open("rb") as start:
            begins = start.read(2) == b"PK"
        problem = "is truncated or damaged" if begins else "is not a saved nngp model"
        remedy = "get a fresh copy or fit the model again" if begins else "pass a file from save()"
        raise ModelFileError(f"{path} {problem}; {remedy}") from None


def _header(archive: zipfile.ZipFile, path: Any) -> dict[str, Any]:
    try:
        header = json.loads(archive.read(HEADER))
        known = header["format"] == FORMAT
    except UNREADABLE:
        known = False
    if not known:
        raise ModelFileError(f"{path} is not a saved nngp model; pass a file from save()")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise ModelFileError(
            f"{path} has format {header.get('version')} and this version of nngp reads up to "
            f"{VERSION}; upgrade nngp"
        )
    return dict(header)


def _rebuilt(
    header: dict[str, Any],
    read: Callable[[str], NDArray[Any]],
    engine: str | Engine,
    progress: Any,
) -> Any:
    params = {name: _unplain(value) for name, value in header["params"].items()}
    model = KINDS[header["kind"]](**params, engine=engine, progress=progress)
    fitted = header["fitted"]
    model.n_features_in_ = fitted["n_features_in"]
    if fitted["feature_names"] is not None:
        model.feature_names_in_ = np.array(fitted["feature_names"], dtype=object)
    scaling = InputScaling(
        read("input_center"), read("input_factor"), fitted["unit"], fitted["constant"]
    )
    targets = TargetScaling(read("target_center"), read("target_spread"))
    posterior = restore(header["posterior"], read, engine=engine, progress=progress)
    model._settle(posterior, scaling, targets, read("relevance"))
    model.selection_ = {
        name: as_column([_unplain(value) for value in column])
        for name, column in fitted["selection"].items()
    }
    if "score" in model.selection_:
        model.selection_["score"] = model.selection_["score"].astype(float)
    if isinstance(model, NNGPClassifier):
        classes = read("classes")
        model.classes_ = classes.astype(object) if fitted["object_classes"] else classes
        model.output_scale_ = fitted["output_scale"]
    else:
        model._single = fitted["single"]
    return model


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        return CG(**value["cg"]) if "cg" in value else from_spec(value["activation"])
    return float(value) if value == "inf" else value
