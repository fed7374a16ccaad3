"""What a fit learned beside its posterior, from a saved model: each value and array checked."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._fields import Fields
from nngp._progress import Callback
from nngp.estimators.data_warnings import TrainingRange
from nngp.estimators.fitted_network import FittedNetwork
from nngp.estimators.model_file import ModelFile, from_json
from nngp.estimators.trees import TreeComparison
from nngp.frames import Columns
from nngp.linsolve import Engine
from nngp.predictive.blend import Blend
from nngp.selection.problem import as_column

EVIDENCE, RANGE = 1e-5, 1e-6  # relative differences that rounding explains


def read_networks(
    file: ModelFile, engine: str | Engine, progress: Callback | bool | None
) -> list[FittedNetwork]:
    """The networks, all of the same inputs and targets."""
    fields = file.header.fields("networks")
    names = list(fields.values)
    if not names or names != [str(k) for k in range(len(names))]:
        raise file.damaged("its networks are not numbered from 0")
    out = []
    for name in names:

        def read(array: str, *shape: Any, _prefix: str = name) -> NDArray[Any]:
            return file.read(f"{_prefix}/{array}", *shape)

        out.append(FittedNetwork.from_saved(fields.fields(name), read, engine, progress))
    sizes = {(len(n.inputs.center), n.posterior.n, n.posterior.targets.shape[1]) for n in out}
    if len(sizes) > 1 or any(not _same(one.weights, out[0].weights) for one in out[1:]):
        raise file.damaged("its networks are not those of one data set")
    return out


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b is None or (a is not None and b is not None and np.array_equal(a, b))


def read_blend(file: ModelFile, networks: int) -> Blend:
    """The shares of the networks and the factors of their deviations."""
    fitted = file.header.fields("fitted")
    if fitted.whole("blend_networks", 1) != networks:
        raise fitted.wrong("blend_networks", str(networks))
    count = fitted.whole("blend_factors", 1, 1000)
    shapes = {"blend_factors": (count,), "blend_weights": (networks, count)}
    return Blend.from_saved(fitted, {name: file.read(name, s) for name, s in shapes.items()})


def read_trees(fitted: Fields) -> TreeComparison | None:
    """The comparison with trees, if there was one."""
    return None if fitted["trees"] is None else TreeComparison.from_saved(fitted.fields("trees"))


def read_names(fitted: Fields) -> tuple[int, list[str] | None]:
    """The number of columns that were given in training, and their names."""
    count = fitted.whole("n_features_in", 1)
    named = fitted["feature_names"] is not None
    return count, fitted.list("feature_names", str, count) if named else None


def read_columns(file: ModelFile, inputs: int) -> Columns | None:
    """The encoder of the columns, which has as many inputs as the networks; None without one."""
    fitted = file.header.fields("fitted")
    count, names = read_names(fitted)
    if fitted["columns"] is None:
        if count != inputs:
            raise fitted.wrong("n_features_in", f"{inputs}")
        return None
    with file.reporting_damage():
        columns = Columns.from_dict(fitted.fields("columns").values)
    known = list(columns.names) if columns.named else None
    if names != known or len(columns.names) != count or len(columns.features) != inputs:
        raise file.damaged(f"its columns are not those of its {inputs} inputs")
    return columns


def read_seen_range(file: ModelFile, factor: Array, fills: Array | None) -> TrainingRange | None:
    """The range of every input in training, with what stands for a missing value in it; None where
    it is not known."""
    values = file.header.fields("fitted")
    if values["row_size"] is None:
        return None
    low, high = (file.read(name, factor.shape) for name in ("input_low", "input_high"))
    if (low > high).any():
        raise file.damaged("the least value of an input is above its largest")
    if fills is not None and ((fills < low) | (fills > high)).any():
        raise file.damaged("the median of an input is not between its least and largest value")
    return TrainingRange(low, high, factor, values.number("row_size", 0))


def check_input_scalings(
    file: ModelFile, seen: TrainingRange | None, networks: Sequence[FittedNetwork]
) -> None:
    """Raise ModelFileError unless each network's inputs have the range that was seen: maps and
    scalings rise, so that least values become least values. Rows of one norm have another."""
    if seen is None:
        return
    for one in networks:
        if one.inputs.unit:
            continue
        X = np.asarray(one.posterior.inputs)
        with np.errstate(all="ignore"):
            ends = one.inputs(np.stack([seen.low, seen.high]))
        bounds = np.stack([X.min(axis=0), X.max(axis=0)])
        slack = RANGE * max(float(np.abs(bounds).max()), np.finfo(float).tiny)
        if not np.allclose(ends, bounds, rtol=RANGE, atol=slack):
            raise file.damaged("its maps and scalings of inputs are not those of its rows")


def check_log_evidence(file: ModelFile, found: float | None) -> None:
    """Raise ModelFileError unless the file states the log evidence that was found, or none."""
    values = file.header.fields("fitted")
    if found is None and values["log_evidence"] is None:
        return
    if found is None or not math.isclose(values.number("log_evidence"), found, rel_tol=EVIDENCE):
        raise values.wrong("log_evidence", str(found))


def read_selection(file: ModelFile) -> dict[str, NDArray[Any]]:
    """The table of networks that were tried: columns of equal length."""
    columns = file.header.fields("fitted").fields("selection").values
    if not all(isinstance(column, list) for column in columns.values()):
        raise file.damaged("its table of networks is damaged")
    cells = [cell for column in columns.values() for cell in column]
    plain = all(isinstance(c, str | int | float | None) or _is_list_of_numbers(c) for c in cells)
    if not plain or len({len(column) for column in columns.values()}) > 1:
        raise file.damaged("its table of networks is damaged")
    with file.reporting_damage():
        return {name: as_column(from_json(column)) for name, column in columns.items()}


def _is_list_of_numbers(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, int | float) for part in value)
