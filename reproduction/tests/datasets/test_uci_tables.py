"""UCI tables: the three collections, their splits, and what can be wrong with a file."""

import numpy as np
import pytest
import small_sets

from nngp_paper import datasets

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(12, 3)), RNG.normal(size=12)
LABELS = np.array([0, 1, 2] * 4, np.int16)
TEST = np.array([[7, 2], [0, 11]], np.uint16)
FOLD = np.array([0, 1, 2, 2, 1, 0] * 2, np.uint8)
PARTS = [RNG.permutation(12) for _ in range(4)]
CV_TRAIN = np.array([p[:9] for p in PARTS], np.uint16)
CV_TEST = np.array([p[9:] for p in PARTS], np.uint16)
STORED = {
    "uci/boston": ("uci_regression/boston.npz", {"X": X, "y": Y, "test": TEST}),
    "uci_more/bike": ("uci_regression_more/bike.npz", {"X": X, "y": Y, "fold": FOLD}),
    "uci_class/iris": (
        "uci_classification/iris.npz",
        {"X": X, "y": LABELS, "cv_train": CV_TRAIN, "cv_test": CV_TEST, "train": 0, "val": 0},
    ),
}


def store(folder, name, **changes):
    file, stored = STORED[name]
    small_sets.write(folder, {file: small_sets.npz_bytes(**(stored | changes))})
    return folder


def test_regression_with_listed_splits(folder):
    table = datasets.load("uci/boston", store(folder, "uci/boston"))
    assert (table.name, table.task) == ("uci/boston", "regression")
    assert np.array_equal(table.X, X)
    assert np.array_equal(table.y, Y)
    trains, tests = zip(*table.splits, strict=True)
    assert [test.tolist() for test in tests] == [[7, 2], [0, 11]]
    assert [train.tolist() for train in trains] == [
        [0, 1, 3, 4, 5, 6, 8, 9, 10, 11],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    ]


def test_regression_with_folds(folder):
    table = datasets.load("uci_more/bike", store(folder, "uci_more/bike"))
    assert len(table.splits) == 3
    assert [test.tolist() for _, test in table.splits] == [
        [0, 5, 6, 11],
        [1, 4, 7, 10],
        [2, 3, 8, 9],
    ]
    for train, test in table.splits:
        assert sorted([*train, *test]) == list(range(12))


def test_classification(folder):
    table = datasets.load("uci_class/iris", store(folder, "uci_class/iris"))
    assert table.task == "classification"
    assert table.y.dtype == np.int64
    assert np.array_equal(table.y, LABELS)
    for (train, test), ours, theirs in zip(table.splits, CV_TRAIN, CV_TEST, strict=True):
        assert np.array_equal(train, ours)
        assert np.array_equal(test, theirs)
    assert datasets.where("uci_class/iris", folder).path == folder / STORED["uci_class/iris"][0]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("uci/boston", {"y": Y[:11]}, r"X has shape \(12, 3\) and y \(11,\), expected"),
        ("uci/boston", {"X": Y}, r"X has shape \(12,\)"),
        ("uci/boston", {"X": X.astype(str)}, "X holds <U32 and y float64, expected numbers"),
        ("uci/boston", {"X": np.where(X[1, 1] == X, np.nan, X)}, "it holds NaN or infinity"),
        ("uci/boston", {"y": np.where(Y[1] == Y, np.inf, Y)}, "it holds NaN or infinity"),
        ("uci/boston", {"test": TEST + 1}, "a split names row 12, but there are rows 0 to 11"),
        ("uci/boston", {"test": TEST.astype(int) - 1}, "a split names row -1, but there are"),
        ("uci/boston", {"test": TEST.astype(float)}, "row numbers are float64"),
        ("uci/boston", {"test": TEST[:, :0]}, "a split has an empty part"),
        ("uci/boston", {"test": np.array([[3, 3]])}, "a row that is in both parts or there twice"),
        ("uci_more/bike", {"fold": FOLD[:5]}, r"fold has shape \(5,\), expected \(12,\)"),
        ("uci_class/iris", {"y": Y}, "expected numbers and whole numbers from 0"),
        ("uci_class/iris", {"y": LABELS - 1}, "a label is -1, but labels count from 0"),
        ("uci_class/iris", {"cv_test": CV_TRAIN}, "a row that is in both parts"),
        ("uci_class/iris", {"cv_test": CV_TEST[:3]}, "is shorter"),
    ],
)
def test_files_that_are_not_as_they_should_be(folder, name, changes, words):
    with pytest.raises(ValueError, match=words) as caught:
        datasets.load(name, store(folder, name, **changes))
    assert str(caught.value).startswith(f"{folder / STORED[name][0]} cannot be used: ")


def test_a_truncated_table(folder):
    path = store(folder, "uci/boston") / STORED["uci/boston"][0]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="it is cut short"):
        datasets.load("uci/boston", folder)
