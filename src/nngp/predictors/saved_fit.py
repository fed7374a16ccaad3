"""What a fit learned beside its posterior, from a saved model: each value and array checked."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._fields import Fields
from nngp.gram import common_var
from nngp.posterior import Posterior
from nngp.predictors.columns import Columns
from nngp.predictors.doubts import SeenRange
from nngp.predictors.model_file import ModelFile, from_json
from nngp.predictors.scaling import InputScaling, TargetScaling
from nngp.predictors.selection.table import as_column

EVIDENCE = 1e-5  # relative difference that rounding explains


def count_inputs(file: ModelFile) -> int:
    """The number of inputs, without a constant one that scaling adds."""
    constant = file.header.fields("fitted").flag("constant")
    return file.header.fields("posterior").whole("d", 1 + constant) - constant


def read_names(fitted: Fields) -> tuple[int, list[str] | None]:
    """The number of columns that were given in training, and their names."""
    count = fitted.whole("n_features_in", 1)
    named = fitted["feature_names"] is not None
    return count, fitted.list("feature_names", str, count) if named else None


def read_columns(file: ModelFile) -> Columns | None:
    """The encoder of the columns, which has as many inputs as the posterior; None without one."""
    fitted, inputs = file.header.fields("fitted"), count_inputs(file)
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


def read_input_scaling(file: ModelFile, posterior: Posterior) -> InputScaling:
    """The scaling of the inputs."""
    values, d = file.header.fields("fitted"), count_inputs(file)
    unit, constant = values.flag("unit"), values.flag("constant")
    center, factor, relevance = (
        file.read(name, (d,)) for name in ("input_center", "input_factor", "relevance")
    )
    if constant > unit or (unit and common_var(posterior._inputs) != 1.0):
        raise values.wrong("unit", "true only of inputs of norm 1, and with a constant input")
    if (factor < 0).any() or (relevance < 0).any():
        raise file.damaged("its factors or relevances of the inputs are negative")
    with np.errstate(over="ignore"):  # a column's spread is not below the rounding of its mean
        far = np.abs(center) * factor > np.sqrt(relevance) / np.finfo(float).eps
    if far.any():
        raise file.damaged("its centers and factors of the inputs contradict each other")
    return InputScaling(center, factor, relevance, unit, constant)


def read_target_scaling(file: ModelFile, posterior: Posterior) -> TargetScaling:
    """The scaling of the targets."""
    outputs = posterior._targets.shape[1]
    center, spread = (file.read(name, (outputs,)) for name in ("target_center", "target_spread"))
    scaling = TargetScaling(center, spread)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = (spread > 0).all() and np.isfinite(scaling.undo(posterior._targets)).all()
    if not whole:
        raise file.damaged("its centers and spreads are not those of its targets")
    return scaling


def read_medians(file: ModelFile) -> Array:
    """The medians of inputs that needed no encoder."""
    return file.read("input_median", (count_inputs(file),))


def read_seen_range(file: ModelFile, factor: Array, fills: Array | None) -> SeenRange | None:
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
    return SeenRange(low, high, factor, values.number("row_size", 0))


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
