"""`nngp runs`: what is in a store of runs."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nngp.runs import (
    STATUSES,
    RunStore,
    as_row,
    column_names,
    export_rows,
    flat,
    unpacked,
)
from nngp.terminal.listing import show_rows
from nngp.terminal.speech import UsageError, nearest, say

EXPORTS = (".csv", ".parquet")
Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """Which runs, and in what order."""

    experiment: str | None
    status: str | None
    conditions: list[str]  # name=value
    sort: str | None
    ascending: bool
    limit: int | None
    lists: bool
    where: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise UsageError(f"--status must be one of {', '.join(STATUSES)}, got '{self.status}'")
        object.__setattr__(self, "where", dict(_condition(text) for text in self.conditions))


def runs(
    path: Path,
    asked: Question,
    columns: list[str],
    export: Path | None,
    merge: Path | None,
    retry: bool,
    as_json: bool,
) -> None:
    """A store to a table of its runs, on the terminal or in a file."""
    if export is not None:
        _check_export(export, path)
    if path.suffix == ".gz" and (merge is not None or retry):
        raise UsageError(f"{path} is packed and can only be read; unpack it with gunzip first")
    with unpacked(path) as file, RunStore(file, create=False) as store:
        _change(store, asked, merge, retry)
        counts = store.counts(asked.experiment, asked.where)
        rows = _rows(store, asked)
    names = column_names(rows)
    split = [name.strip() for part in columns for name in part.split(",") if name.strip()]
    picked = [_resolved(name, names) for name in split] if rows else []
    if asked.sort is not None and rows:
        rows = _sorted(rows, _resolved(asked.sort, names), asked.ascending)
    answer = {"store": str(path), "counts": counts, "matched": len(rows)}
    if export is not None:
        say(f"{export_rows(rows[: asked.limit], export)} runs written to {export}")
        answer["export"] = str(export)
    if as_json:
        shown = [{name: row.get(name) for name in picked or row} for row in rows[: asked.limit]]
        print(json.dumps(_words(answer | ({} if export else {"runs": shown})), allow_nan=False))
    elif export is None:
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        show_rows(f"{path}: {said}", rows, picked, asked.limit)


def _change(store: RunStore, asked: Question, merge: Path | None, retry: bool) -> None:
    """What is to be done before looking: results from elsewhere, failed runs once more."""
    if merge is not None:
        say(f"{store.merge(merge)} finished runs taken over from {merge}")
    if retry:
        failed = store.runs(asked.experiment, "failed", asked.where, lists=False)
        say(f"{store.retry([run.key for run in failed])} failed runs are pending again")


def _rows(store: RunStore, asked: Question) -> list[Row]:
    """The runs that are asked for; if there are none, names that do not occur are said."""
    found = store.runs(asked.experiment, asked.status, asked.where, lists=asked.lists)
    if not found:
        everything = store.runs(lists=False)
        if asked.experiment is not None:
            _known(
                asked.experiment, {run.experiment for run in everything}, "no experiment is called"
            )
        names = {name for run in everything for name in flat(run.config)}
        for name in flat(asked.where):
            _known(name, names, "no configuration has")
    return [as_row(run, asked.lists) for run in found]


def _known(name: str, names: Iterable[str], none: str) -> None:
    if names and name not in names:
        known = sorted(names)
        raise UsageError(f"{none} '{name}'{nearest(name, known)}; there are: {', '.join(known)}")


def _resolved(name: str, names: list[str]) -> str:
    """A column by its full name, or without the config. or result. before it."""
    meant = [full for full in (name, f"config.{name}", f"result.{name}") if full in names]
    if not meant:
        short = [full.removeprefix("config.").removeprefix("result.") for full in names]
        raise UsageError(
            f"there is no column '{name}'{nearest(name, short)}; there are: {', '.join(names)}"
        )
    if len(meant) > 1:
        raise UsageError(f"'{name}' may be {' or '.join(meant)}; write it out")
    return meant[0]


def _sorted(rows: list[Row], name: str, ascending: bool) -> list[Row]:
    """Numbers, then texts, then what is missing or NaN."""
    numbers, texts, rest = [], [], []
    for row in rows:
        value = row.get(name)
        if isinstance(value, int | float) and not math.isnan(value):
            numbers.append((value, row))
        elif value is None or isinstance(value, float):
            rest.append(row)
        else:
            texts.append((str(value), row))
    for part in (numbers, texts):
        part.sort(key=lambda pair: pair[0], reverse=not ascending)
    return [row for _, row in (*numbers, *texts)] + rest


def _condition(text: str) -> tuple[str, Any]:
    """name=value, the value as in JSON, or a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--where must be name=value, got '{text}'")
    try:
        return name, json.loads(value, parse_constant=lambda word: word)
    except ValueError:
        return name, value


def _words(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become words."""
    if isinstance(value, dict):
        return {name: _words(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_words(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _check_export(export: Path, store: Path) -> None:
    from nngp.terminal.tables import check_writable

    check_writable(export, EXPORTS)
    if export.exists() and store.exists() and export.samefile(store):
        raise UsageError(f"the output {export} is the store; choose another name")
