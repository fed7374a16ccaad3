"""Saved models: one safetensors file, whose metadata describe the model as records.

`SavedModel` is all of an estimator that `load` needs. Its records are checked one by one and
against each other where the file is read (`nngp._records`, and `check_saved` here); what has to be
computed is compared while the estimator is restored. A file is written beside its path, read again,
and then moved there.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._files import replaced
from nngp._records import (
    NonNegative,
    Positive,
    Range,
    Shaped,
    Share,
    from_plain,
    reading,
    register,
    register_record,
    to_plain,
)
from nngp._tensors import TensorFile, open_tensors, parse_json, write_tensors
from nngp.architecture import Activation, from_spec, spec_of
from nngp.architecture.invariances import Family
from nngp.architecture.invariances.saved import family_from_dict
from nngp.errors import ModelFileError
from nngp.estimators.class_model import ClassModel
from nngp.estimators.data_warnings import TrainingRange
from nngp.estimators.fitted_network import FittedNetwork
from nngp.estimators.training_rows import are_weights
from nngp.estimators.trees import TreeComparison
from nngp.estimators.varying_noise import VaryingNoise
from nngp.frames import Columns
from nngp.frames.scaling import InputScaling
from nngp.gram import Inputs, common_var
from nngp.linsolve import CG, Engine
from nngp.posterior.saved import SavedPosterior
from nngp.predictive.blend import Blend
from nngp.predictive.dirichlet import DirichletProcess, DirichletSetting, Labels
from nngp.predictive.one_hot_link import OneHotLink
from nngp.predictive.softmax import SoftmaxProcess, SoftmaxSetting
from nngp.predictive.targets import TargetScaling
from nngp.selection.problem import as_column

FORMAT, VERSION = "nngp-model", 7
EVIDENCE, RANGE = 1e-5, 1e-6  # relative differences that rounding explains
CLASS_TYPES = re.compile(r"[<|][biuf]\d|<U[1-9]\d{0,5}")
LARGEST_SPREAD = 1e6  # of one-hot targets, over the scale of a network's outputs

register(Activation, spec_of, from_spec)
register(Family, lambda family: family.as_dict(), family_from_dict)
register_record(CG)


@dataclass(frozen=True)
class SavedNoise:
    """A noise that depends on the inputs."""

    posterior: SavedPosterior
    level: Positive
    least: NonNegative
    gain: float


@dataclass(frozen=True)
class SavedNetwork:
    """A fitted network. The weights are those of the rows, None if all are one."""

    posterior: SavedPosterior
    inputs: InputScaling
    targets: TargetScaling
    noise_var: NonNegative
    varying: SavedNoise | None
    weights: Annotated[Array, Shaped("n"), Range(0.0, above=True)] | None

    @classmethod
    def of(cls, network: FittedNetwork, *, factor: bool) -> "SavedNetwork":
        """The record of a network."""
        varying, noise = network.varying, None
        if varying is not None:
            posterior = SavedPosterior.of(varying.posterior, factor=factor)
            noise = SavedNoise(posterior, varying.level, varying.least, varying.gain)
        posterior = SavedPosterior.of(network.posterior, factor=factor)
        scalings = network.inputs, network.targets
        return cls(posterior, *scalings, network.noise_var, noise, network.weights)

    def check_saved(self) -> None:
        """Raise ValueError for parts of different networks."""
        posterior, noise = self.posterior, self.posterior.noise.variance
        (_, d), outputs = posterior.X.shape, posterior.Y.shape[1]
        by_row = isinstance(noise, np.ndarray)
        if posterior.single or len(self.targets.center) != outputs:
            raise ValueError("its posterior is not that of an estimator")
        if len(self.inputs.center) != d - self.inputs.constant:
            raise ValueError("its scaling is not that of its inputs")
        if self.inputs.unit and common_var(Inputs.of(posterior.X)) != 1.0:
            raise ValueError("its inputs are not of norm 1, as its scaling leaves them")
        if not by_row and self.noise_var != noise:
            raise ValueError(f"its noise_var is {self.noise_var}, and its posterior has {noise}")
        if not np.isfinite(self.targets.undo(posterior.Y)).all():
            raise ValueError("its centers and spreads are not those of its targets")
        if self.varying is not None:
            one = self.varying.posterior
            if not one.single or one.X.shape[1] != d:
                raise ValueError("its noise depends on other inputs than its network")
        if self.weights is not None:
            possible = are_weights(self.weights) and (self.weights != 1.0).any() and by_row
            if not possible or len(self.weights) != len(posterior.X):
                raise ValueError("its weights are not those of weighted rows")

    def restore(self, engine: str | Engine, progress: Any) -> FittedNetwork:
        """The network again."""
        varying, noise = self.varying, None
        posterior = self.posterior.restore(engine=engine, progress=progress)
        if varying is not None:
            process = varying.posterior.restore(engine=engine, progress=progress)
            noise = VaryingNoise(process, varying.level, varying.least, np.empty(0), varying.gain)
        targets = self.targets.reaching(posterior.targets)
        return FittedNetwork(posterior, self.inputs, targets, self.noise_var, noise, self.weights)


@dataclass(frozen=True)
class SavedRange:
    """The range of the inputs in training, and the size of a row."""

    low: Annotated[Array, Shaped("d")]
    high: Annotated[Array, Shaped("d")]
    size: NonNegative

    def check_saved(self) -> None:
        """Raise ValueError for an empty range."""
        if (self.low > self.high).any():
            raise ValueError("the least value of an input is above its largest")


@dataclass(frozen=True)
class SavedRegression:
    """Fitted values of a regressor other than its networks."""

    single: bool
    duplicate_rows: int
    blend: Blend
    trees: TreeComparison | None


@dataclass(frozen=True)
class SavedLink:
    """A link without the frequencies of the classes, which are those of the rows."""

    scale: Positive
    exponent: Annotated[float, Range(0.0, 10.0)]
    mixing: Share


@dataclass(frozen=True)
class SavedClassModel:
    """A likelihood of classes."""

    link: SavedLink
    regression_loss: NonNegative | None
    dirichlet_loss: NonNegative | None
    softmax_loss: NonNegative | None
    dirichlet: DirichletSetting | None
    softmax: SoftmaxSetting | None

    @classmethod
    def of(cls, model: ClassModel) -> "SavedClassModel":
        """The record of a likelihood; its processes are computed again."""
        link, process = model.link, model.process
        return cls(
            SavedLink(link.scale, link.exponent, link.mixing),
            model.losses.get("regression"),
            model.losses.get("dirichlet"),
            model.losses.get("softmax"),
            process.setting if isinstance(process, DirichletProcess) else None,
            process.setting if isinstance(process, SoftmaxProcess) else None,
        )

    def restore(self, network: FittedNetwork, labels: Labels) -> ClassModel:
        """The likelihood of a network again."""
        numbers = self.link.scale, self.link.exponent, self.link.mixing
        losses = {
            "regression": self.regression_loss,
            "dirichlet": self.dirichlet_loss,
            "softmax": self.softmax_loss,
        }
        known = {name: loss for name, loss in losses.items() if loss is not None}
        model = ClassModel(network, labels, OneHotLink(labels.frequencies, *numbers), known)
        if self.softmax is not None:
            return model.with_softmax(self.softmax)
        return model if self.dirichlet is None else model.with_dirichlet(self.dirichlet)


@dataclass(frozen=True)
class SavedClassification:
    """Fitted values of a classifier other than its networks. The classes are plain values of
    `class_type`, or any texts."""

    classes: list[Any]
    class_type: str | None
    models: tuple[SavedClassModel, ...]
    network_weights: Annotated[Array, Shaped("networks"), Range(0.0, 2.0)]
    trees: TreeComparison | None
    frequency_share: Share
    loss_estimate: NonNegative | None

    def check_saved(self) -> None:
        """Raise ValueError for classes or weights that no fit has."""
        labels = self.labels()
        if labels.ndim != 1 or not (labels[1:] > labels[:-1]).all():
            raise ValueError("its classes are not in ascending order")
        if abs(self.network_weights.sum() - 1.0) > 1e-9:
            raise ValueError("its shares of networks are not probabilities")
        if not len(self.models) == len(self.network_weights):
            raise ValueError("its likelihoods are not those of its networks")

    def labels(self) -> NDArray[Any]:
        """The classes as an array."""
        if self.class_type is not None and not CLASS_TYPES.fullmatch(self.class_type):
            raise ValueError(f"its classes are said to be {self.class_type[:20]!r}")
        if self.class_type is None:
            if not all(isinstance(one, str) for one in self.classes):
                raise ValueError("its classes are no texts")
            return np.array(self.classes, dtype=object)
        found = np.array(self.classes, dtype=self.class_type)
        if repr(found.tolist()) != repr(self.classes):
            raise ValueError(f"its classes are none of {self.class_type[:20]}")
        return found

    @staticmethod
    def plain_labels(classes: NDArray[Any]) -> tuple[list[Any], str | None]:
        """The classes as plain values, and their type; None for texts as objects."""
        if classes.dtype == object and not all(isinstance(one, str) for one in classes):
            raise ValueError("class labels that are neither text nor numbers cannot be saved")
        if classes.dtype == object:
            return classes.tolist(), None
        return classes.tolist(), classes.dtype.newbyteorder("<").str


@dataclass(frozen=True)
class SavedModel:
    """An estimator. `medians` of the inputs stand for missing values where no columns do;
    `selection` is the table of networks that were tried."""

    params: dict[str, Any]
    notes: dict[str, Any]
    n_features_in: Annotated[int, Range(1)]
    feature_names: tuple[str, ...] | None
    columns: Columns | None
    medians: Annotated[Array, Shaped("d")] | None
    seen: SavedRange | None
    log_evidence: float | None
    selection: dict[str, list[Any]]
    networks: tuple[SavedNetwork, ...]
    fit: SavedRegression | SavedClassification

    @property
    def kind(self) -> str:
        """The class of the estimator."""
        regression = isinstance(self.fit, SavedRegression)
        return "NNGPRegressor" if regression else "NNGPClassifier"

    def check_saved(self) -> None:
        """Raise ValueError for parts that are not those of one model."""
        if not self.networks:
            raise ValueError("it has no networks")
        first = self.networks[0]
        for one in self.networks:
            sizes = [(len(n.inputs.center), *n.posterior.Y.shape) for n in (one, first)]
            if sizes[0] != sizes[1] or not _same(one.weights, first.weights):
                raise ValueError("its networks are not those of one data set")
        self._check_columns(len(first.inputs.center))
        self._check_fit(first.posterior.Y)
        cells = [cell for column in self.selection.values() for cell in column]
        plain = all(isinstance(c, str | int | float | None) or _are_numbers(c) for c in cells)
        if not plain or len({len(column) for column in self.selection.values()}) > 1:
            raise ValueError("its table of networks is damaged")
        if self.seen is not None:
            for one in self.networks:
                _check_input_scaling(one, self.seen)

    def _check_columns(self, inputs: int) -> None:
        columns, count, seen = self.columns, self.n_features_in, self.seen
        names, fills = self.feature_names, self.medians
        if columns is None:
            if count != inputs or fills is None or (names is not None and len(names) != count):
                raise ValueError(f"its columns are not its {inputs} inputs")
        else:
            known, fills = (columns.names if columns.named else None), columns.fills
            same = names == known and len(columns.names) == count
            if not same or len(columns.features) != inputs or self.medians is not None:
                raise ValueError(f"its columns are not those of its {inputs} inputs")
        assert fills is not None
        if len(fills) != inputs or (seen is not None and len(seen.low) != inputs):
            raise ValueError("the ranges and medians are not those of its inputs")
        if seen is not None and ((fills < seen.low) | (fills > seen.high)).any():
            raise ValueError("the median of an input is not between its least and largest value")

    def _check_fit(self, Y: Array) -> None:
        """Raise ValueError unless the networks are those of the regression or classification."""
        fit, (n, outputs) = self.fit, Y.shape
        if isinstance(fit, SavedClassification):
            if len(fit.classes) != outputs or len(fit.models) != len(self.networks):
                raise ValueError("its classes or likelihoods are not those of its networks")
            for network in self.networks:
                _check_one_hot(network)
        elif len(fit.blend.weights) != len(self.networks) or fit.duplicate_rows > n:
            raise ValueError("its weights or duplicate rows are not those of its networks")
        elif fit.single and outputs > 1:
            raise ValueError("single must be false, as there are several outputs")

    def training_range(self) -> TrainingRange | None:
        """The range of the inputs in training; None where it is not known."""
        seen, factor = self.seen, self.networks[0].inputs.raw_factor
        return None if seen is None else TrainingRange(seen.low, seen.high, factor, seen.size)

    def table(self) -> dict[str, NDArray[Any]]:
        """The table of networks that were tried, as columns."""
        return {name: as_column(column) for name, column in self.selection.items()}

    def check_log_evidence(self, found: float | None) -> None:
        """Raise ModelFileError unless the file states the log evidence that was found, or none."""
        stated = self.log_evidence
        if found is None or stated is None:
            same = found is stated
        else:
            same = math.isclose(stated, found, rel_tol=EVIDENCE)
        if not same:
            raise ModelFileError(f"its log evidence is {stated}, and that of its networks {found}")


def one_hot_labels(network: SavedNetwork) -> Labels:
    """The classes of the training rows."""
    Y, weights = network.posterior.Y, network.weights
    return Labels(Y.argmax(axis=1), np.ones(len(Y)) if weights is None else weights, Y.shape[1])


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator as they are saved: without those that `load` takes."""
    own = {name: value for name, value in params.items() if name not in ("engine", "progress")}
    if isinstance(own["random_state"], np.random.RandomState):
        own["random_state"] = None  # its state has changed since
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items()}


def write_model(
    path: str | os.PathLike[str], model: SavedModel, check: Callable[[SavedModel], object]
) -> None:
    """Write a model; an older file of that name stays until the new one is complete, and `check`
    has read it. ValueError if that fails."""
    plain, arrays = to_plain(model)
    description = json.dumps(plain, allow_nan=False)
    facts = {"format": FORMAT, "version": str(VERSION), "description": description}
    with replaced(path) as part:
        write_tensors(part, facts, arrays)
        try:
            check(read_model(part))
        except ModelFileError as error:
            cause = str(error).removeprefix(f"{part} is damaged ").rpartition("; ")[0] or error
            raise ValueError(f"{path} was not written: it could not be loaded {cause}") from None


def read_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a saved model, all but the factors, which are mapped."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}; was the model saved there?")
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a saved model")
    _check_kind(path)
    with reading(path):
        try:
            opened = open_tensors(path)
            _check_version(path, opened)
            plain = parse_json(opened.facts.get("description", ""))
        except ModelFileError:
            raise
        except ValueError as cause:
            raise ModelFileError(str(cause)) from None
        if set(opened.facts) != {"format", "version", "description"}:
            raise ModelFileError("its metadata hold more than a model")
        return from_plain(SavedModel, plain, opened.arrays)


def _check_kind(path: str | os.PathLike[str]) -> None:
    """Raise ModelFileError for files of another kind, and for those of older versions."""
    with open(path, "rb") as file:
        start = file.read(100)  # the metadata come first
    if start.startswith(b"PK\3\4"):
        raise ModelFileError(
            f"{path} is a zip archive: no model, or one of an older version of nngp, which "
            "this version cannot read; fit the model again and save it"
        )
    if FORMAT.encode() not in start:
        raise ModelFileError(f"{path} is not a saved nngp model; pass a file from save()")


def _check_version(path: str | os.PathLike[str], file: TensorFile) -> None:
    if file.facts.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a saved nngp model; pass a file from save()")
    version = file.facts.get("version", "")
    if not version.isdecimal() or len(version) > 9:
        raise ModelFileError("its header has no format version")
    if int(version) != VERSION:
        remedy = "fit the model again and save it" if int(version) < VERSION else "upgrade nngp"
        raise ModelFileError(
            f"{path} has format {version} and this version of nngp reads format {VERSION}; {remedy}"
        )


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b is None or (a is not None and b is not None and np.array_equal(a, b))


def _are_numbers(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(part, int | float) for part in value)


def _check_input_scaling(network: SavedNetwork, seen: SavedRange) -> None:
    """Raise ValueError unless a network's inputs have the range that was seen: maps and scalings
    rise, so that least values become least values. Rows of equal norm have another."""
    if network.inputs.unit:
        return
    X, ends = network.posterior.X, network.inputs(np.stack([seen.low, seen.high]))
    bounds = np.stack([X.min(axis=0), X.max(axis=0)])
    slack = RANGE * max(float(np.abs(bounds).max()), np.finfo(float).tiny)
    if not np.allclose(ends, bounds, rtol=RANGE, atol=slack):
        raise ValueError("its maps and scalings of inputs are not those of its rows")


def _check_one_hot(network: SavedNetwork) -> None:
    """Raise ValueError unless a network's targets are those of labels, and its noise that of the
    rows' weights."""
    scaling, labels = network.targets, one_hot_labels(network)
    if scaling.center.any() or np.ptp(scaling.spread) or scaling.spread[0] > LARGEST_SPREAD:
        raise ValueError("its targets are not scaled as those of classes")
    if not np.array_equal(scaling(labels.one_hot()), network.posterior.Y):
        raise ValueError("its targets are not those of classes")
    used: Any = network.posterior.noise.variance
    stated: Any = network.noise_var
    if labels.is_weighted:  # at least the floor, where the ladder was climbed
        stated = np.maximum(stated / labels.weights, np.min(used))
    if np.shape(stated) != np.shape(used) or not np.array_equal(stated, used):
        raise ValueError("its noise is not that of its rows")
