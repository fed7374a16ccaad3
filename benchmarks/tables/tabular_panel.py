"""A panel: one measure, a mean for each set and method, over the same splits for all methods.

Only what can be compared is compared. A method has done a set if it has tried at least half of the
splits that some method has tried, or five. Sets that nngp has not done do not count. Methods with
fewer than 90% of the sets of the method with most are left out and named. Of each set the splits
are used that every remaining method has tried; sets that one of them has not done are left out. A
method that failed in a split has NaN, and ranks last.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

Array = NDArray[np.float64]
Record = dict[str, Any]
Tried = dict[str, dict[str, dict[float, float]]]  # values by set, method and split
ENOUGH_SETS = 0.9
ENOUGH_SPLITS, MANY_SPLITS = 0.5, 5
OURS = "nngp"
LARGER_IS_BETTER = ("log_likelihood", "accuracy")


@dataclass(frozen=True)
class Panel:
    """`values` has a row for each set and a column for each method."""

    measure: str
    sets: list[str]
    methods: list[str]
    values: Array
    left_out: list[str]

    @property
    def losses(self) -> Array:
        """The values with such a sign that less is better; failures are infinite."""
        sign = -1 if self.measure.rpartition(".")[2] in LARGER_IS_BETTER else 1
        return np.where(np.isnan(self.values), np.inf, sign * self.values)

    def ranks(self) -> dict[str, float]:
        """The average rank of each method over the sets; 1 is best."""
        if not self.sets:
            return {}
        mean = rankdata(self.losses, axis=1).mean(axis=0)
        return dict(zip(self.methods, mean, strict=True))

    def means(self) -> dict[str, float]:
        """The mean of each method over the sets in which no method failed."""
        whole = self.values[~np.isnan(self.values).any(axis=1)]
        if not len(whole):
            return {}
        return dict(zip(self.methods, whole.mean(axis=0), strict=True))

    def only(self) -> dict[str, float]:
        """The values of a panel of one set, or of none."""
        rows = [dict(zip(self.methods, row, strict=True)) for row in self.values.tolist()]
        return rows[0] if rows else {}

    def paired(self, ours: str, other: str) -> tuple[int, int, int, float]:
        """Sets won, drawn, lost by `ours`, and the two-sided p-value of Wilcoxon's signed ranks.

        Errors are compared by their logarithms, since sets differ in scale.
        """
        a, b = (self.losses[:, self.methods.index(method)] for method in (ours, other))
        won, lost = int((a < b).sum()), int((a > b).sum())
        both = np.isfinite(a) & np.isfinite(b)
        change = a[both] - b[both]
        if self.measure in ("rmse", "crps"):
            change = np.log(a[both] / b[both])
        p = float(wilcoxon(change).pvalue) if np.any(change) else 1.0
        return won, len(a) - won - lost, lost, p


def panel(records: list[Record], measure: str) -> Panel:
    """The panel of a measure; records without `error` and without the measure do not count."""
    tried: Tried = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if measure in record or "error" in record:
            name = _name(record)
            tried[name][record["method"]][record["split"]] = record.get(measure, np.nan)
    for by_method in tried.values():
        most = min(ENOUGH_SPLITS * max(map(len, by_method.values())), MANY_SPLITS)
        for method in [m for m, splits in by_method.items() if len(splits) < most]:
            del by_method[method]
    if any(OURS in by_method for by_method in tried.values()):
        tried = {name: by_method for name, by_method in tried.items() if OURS in by_method}
    methods, left_out = _enough(tried)
    rows = {name: _means(by_method, methods) for name, by_method in sorted(tried.items())}
    kept = {name: row for name, row in rows.items() if row is not None}
    values = np.array(list(kept.values())).reshape(len(kept), len(methods))
    return Panel(measure, list(kept), methods, values, left_out)


def _name(record: Record) -> str:
    return f"{record['collection']}/{record['set']}"


def _enough(tried: Tried) -> tuple[list[str], list[str]]:
    counts: dict[str, int] = defaultdict(int)
    for by_method in tried.values():
        for method in by_method:
            counts[method] += 1
    most = max(counts.values(), default=0)
    ordered = sorted(counts, key=lambda m: (not m.startswith("nngp"), m))
    methods = [m for m in ordered if counts[m] >= ENOUGH_SETS * most]
    return methods, [m for m in ordered if m not in methods]


def _means(by_method: dict[str, dict[float, float]], methods: list[str]) -> list[float] | None:
    shared = set.intersection(*(set(by_method.get(m, {})) for m in methods))
    if not shared:
        return None
    return [float(np.mean([by_method[m][split] for split in sorted(shared)])) for m in methods]
