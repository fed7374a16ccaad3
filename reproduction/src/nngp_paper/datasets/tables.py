"""UCI tables: three collections, a folder each, and the reader of their .npz files.

- `uci/NAME`, in `uci_regression/`: the sets of the Bayesian-network literature with the splits of
  Hernández-Lobato and Adams (2015). Arrays X, y, and test (splits, n_test): row numbers.
- `uci_more/NAME`, in `uci_regression_more/`: more regression sets. Arrays X, y, and fold (n,):
  split s tests on the rows with fold s.
- `uci_class/NAME`, in `uci_classification/`: the sets of Fernández-Delgado et al. (2014). Arrays X,
  y, cv_train and cv_test (4, ·). Parts for testing that some sets have beside these (X_test) are
  not read: at their origin they are on another scale than X.

Nobody publishes checksums of these tables in this form, so they are never downloaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nngp_paper.datasets.files import read_npz, readable_errors

Task = Literal["regression", "classification"]
Rows = NDArray[np.int64]
Splits = list[tuple[Rows, Rows]]
Stored = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Collection:
    """Tables of one kind in one folder; `keys` are the arrays beside X and y."""

    prefix: str
    title: str
    folder: str
    task: Task
    keys: tuple[str, ...]
    listed: str  # names, separated by spaces

    def names(self) -> list[str]:
        return [f"{self.prefix}/{name}" for name in self.listed.split()]

    def file(self, name: str) -> str:
        """The path of a set below a data folder."""
        return f"{self.folder}/{name.removeprefix(f'{self.prefix}/')}.npz"


COLLECTIONS = (
    Collection(
        "uci",
        "UCI regression, the splits of the Bayesian-network literature",
        "uci_regression",
        "regression",
        ("test",),
        "boston concrete energy kin8nm naval power protein wine_red yacht",
    ),
    Collection(
        "uci_class",
        "UCI classification, four splits each",
        "uci_classification",
        "classification",
        ("cv_train", "cv_test"),
        """
        abalone acute-inflammation acute-nephritis annealing arrhythmia audiology-std
        balance-scale balloons bank blood breast-cancer breast-cancer-wisc
        breast-cancer-wisc-diag breast-cancer-wisc-prog breast-tissue car
        cardiotocography-10clases cardiotocography-3clases chess-krvk chess-krvkp
        congressional-voting conn-bench-sonar-mines-rocks conn-bench-vowel-deterding contrac
        credit-approval cylinder-bands dermatology echocardiogram ecoli energy-y1 energy-y2
        fertility flags glass haberman-survival hayes-roth heart-cleveland heart-hungarian
        heart-switzerland heart-va hepatitis hill-valley horse-colic ilpd-indian-liver
        image-segmentation ionosphere iris led-display lenses letter libras low-res-spect
        lung-cancer lymphography magic mammographic molec-biol-promoter molec-biol-splice
        monks-1 monks-2 monks-3 mushroom musk-1 nursery oocytes_merluccius_nucleus_4d
        oocytes_merluccius_states_2f oocytes_trisopterus_nucleus_2f
        oocytes_trisopterus_states_5b optical ozone page-blocks parkinsons pendigits pima
        pittsburg-bridges-MATERIAL pittsburg-bridges-REL-L pittsburg-bridges-SPAN
        pittsburg-bridges-T-OR-D pittsburg-bridges-TYPE planning plant-margin plant-shape
        plant-texture post-operative primary-tumor ringnorm seeds semeion soybean spambase spect
        spectf statlog-australian-credit statlog-german-credit statlog-heart statlog-image
        statlog-landsat statlog-vehicle steel-plates synthetic-control teaching thyroid
        tic-tac-toe titanic trains twonorm vertebral-column-2clases vertebral-column-3clases
        wall-following waveform waveform-noise wine wine-quality-red wine-quality-white yeast
        zoo
        """,
    ),
    Collection(
        "uci_more",
        "more UCI regression, ten folds each",
        "uci_regression_more",
        "regression",
        ("fold",),
        """
        airfoil autompg autos bike breastcancer challenger concrete concreteslump elevators energy
        fertility forest gas housing keggdirected keggundirected kin40k machine parkinsons
        pendulum pol protein pumadyn32nm servo skillcraft sml solar stock tamielectric wine yacht
        """,
    ),
)


def collection_of(name: str) -> Collection | None:
    """The collection of a set, or None if it is no table."""
    return next((c for c in COLLECTIONS if name in c.names()), None)


@dataclass(frozen=True)
class Table:
    """Inputs X (n, d) in float64, not standardised here; y in float64, or int64 labels from 0;
    splits: pairs of row numbers to train on and to test on.

    Examples
    --------
    >>> import numpy as np, nngp, os
    >>> from nngp_paper import datasets
    >>> os.makedirs("data/uci_regression")
    >>> X, y, test = np.arange(8.0).reshape(4, 2), np.arange(4.0), np.array([[0], [3]])
    >>> np.savez("data/uci_regression/yacht.npz", X=X, y=y, test=test)
    >>> table = datasets.load("uci/yacht", "data")
    >>> table.task, table.X.shape, [held_out.tolist() for _, held_out in table.splits]
    ('regression', (4, 2), [[0], [3]])
    """

    name: str
    task: Task
    X: NDArray[np.float64]
    y: NDArray[Any]
    splits: Splits


def _listed(stored: Stored, n: int) -> Splits:
    every = np.arange(n)
    return [(np.setdiff1d(every, test), _rows(test)) for test in stored["test"]]


def _folded(stored: Stored, n: int) -> Splits:
    fold = stored["fold"]
    if fold.shape != (n,):
        raise ValueError(f"fold has shape {fold.shape}, expected {(n,)}")
    return [(np.flatnonzero(fold != s), np.flatnonzero(fold == s)) for s in np.unique(fold)]


def _paired(stored: Stored, n: int) -> Splits:
    pairs = zip(stored["cv_train"], stored["cv_test"], strict=True)
    return [(_rows(train), _rows(test)) for train, test in pairs]


def _rows(numbers: NDArray[Any]) -> Rows:
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"row numbers are {numbers.dtype}, expected whole numbers")
    return numbers.astype(np.int64)


SPLITS: dict[str, Callable[[Stored, int], Splits]] = {
    "uci": _listed,
    "uci_class": _paired,
    "uci_more": _folded,
}


def read_table(collection: Collection, name: str, path: Path) -> Table:
    """Read a table, and check its shapes, types, values and splits."""
    stored = read_npz(path, ("X", "y", *collection.keys))
    with readable_errors(path):
        X, y = _values(stored["X"], stored["y"], collection.task)
        splits = SPLITS[collection.prefix](stored, len(y))
        for train, test in splits:
            _check_split(train, test, len(y))
    return Table(name, collection.task, X, y, splits)


def _values(X: NDArray[Any], y: NDArray[Any], task: Task) -> tuple[NDArray[np.float64], Any]:
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"X has shape {X.shape} and y {y.shape}, expected (n, d) and (n,)")
    kinds = "iu" if task == "classification" else "fiu"
    if X.dtype.kind not in "fiu" or y.dtype.kind not in kinds:
        wanted = "whole numbers from 0" if task == "classification" else "numbers"
        raise ValueError(f"X holds {X.dtype} and y {y.dtype}, expected numbers and {wanted}")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("it holds NaN or infinity")
    if task == "classification" and y.min(initial=0) < 0:
        raise ValueError(f"a label is {y.min()}, but labels count from 0")
    return X.astype(np.float64), y.astype(np.int64 if task == "classification" else np.float64)


def _check_split(train: Rows, test: Rows, n: int) -> None:
    both = np.concatenate([train, test])
    outside = both[(both < 0) | (both >= n)]
    if len(outside):
        raise ValueError(f"a split names row {outside[0]}, but there are rows 0 to {n - 1}")
    if not len(train) or not len(test) or len(np.unique(both)) != len(both):
        raise ValueError("a split has an empty part, or a row that is in both parts or there twice")
