"""`nngp-paper runs`: the runs in a store as a table, as JSON, or in a file."""

import json
import math
from collections.abc import Iterable
from typing import Any

from nngp_paper.runs import STATUSES, RunStore, as_row, column_names, export_rows, flat, unpacked
from nngp_paper.terminal.files import check_not_input, check_writable
from nngp_paper.terminal.options import RunsOptions
from nngp_paper.terminal.output import UsageError, print_json, print_message, print_rows, suggestion

EXPORTS = (".csv",)
Row = dict[str, Any]  # values of JSON, by column
SELECTIONS = ("experiment", "status", "where", "sort", "limit", "columns")
SUMMARY = ("experiment", *STATUSES, "seconds", "finished")
MINUTES = len("2026-01-31T12:00")


def runs(options: RunsOptions) -> None:
    """Select and sort the runs of a store, then print or export them."""
    where = _checked(options)
    with unpacked(options.store) as file, RunStore(file, create=False) as store:
        _change(store, options, where)
        counts = store.counts(options.experiment, where)
        rows = _rows(store, options, where)
    names = column_names(rows)
    wanted = [name.strip() for part in options.columns or [] for name in part.split(",")]
    picked = [_full_name(name, names) for name in wanted if name] if rows else []
    if options.sort is not None and rows:
        rows = _sorted(rows, _full_name(options.sort, names), options.ascending)
    facts: Row = {"store": str(options.store), "counts": counts, "matched": len(rows)}
    if options.export is not None:
        count = export_rows(rows[: options.limit], options.export)
        print_message(f"{count} runs written to {options.export}")
        facts["export"] = str(options.export)
    if options.as_json:
        if options.export is None:
            kept = rows[: options.limit]
            facts["runs"] = [{name: row.get(name) for name in picked or row} for row in kept]
        print_json(facts, lambda number: number if math.isfinite(number) else str(number))
    elif options.export is None:
        title = ", ".join(f"{count} {status}" for status, count in counts.items())
        _print(f"{options.store}: {title}", rows, picked, options)


def _print(title: str, rows: list[Row], picked: list[str], options: RunsOptions) -> None:
    """Print runs with the columns that are wanted, or that tell them apart. The columns of several
    experiments are too many for a terminal: without a selection they are counted, with one they
    are shown by what they share."""
    experiments = list(dict.fromkeys(row["experiment"] for row in rows))
    if len(experiments) > 1 and not any(getattr(options, name) for name in SELECTIONS):
        print_rows(title, _summary(rows), SUMMARY, len(experiments))
        print_message(
            f"to list runs: nngp-paper runs {options.store} --experiment {experiments[0]}"
        )
    else:
        shown = picked or _distinguishing(rows)
        print_rows(title, rows, shown, options.limit, cut=not picked)
        if len(experiments) > 1 and not picked:
            print_message("only what all of them have is shown; choose with --columns")


def _summary(rows: list[Row]) -> list[Row]:
    """A row for each experiment: how many runs it has, how long they took, when the last ended."""
    out: dict[str, Row] = {}
    for row in rows:
        one = out.setdefault(
            row["experiment"],
            {"experiment": row["experiment"], **dict.fromkeys(STATUSES, 0), "seconds": 0.0},
        )
        one[row["status"]] += 1
        one["seconds"] += row["seconds"] or 0.0
        one["finished"] = max(one.get("finished") or "", (row["finished"] or "")[:MINUTES])
    return list(out.values())


def _checked(options: RunsOptions) -> Row:
    """The conditions of --where; UsageError for options that cannot be used."""
    if options.status is not None and options.status not in STATUSES:
        raise UsageError(f"--status must be one of {', '.join(STATUSES)}, got '{options.status}'")
    where = dict(_condition(text) for text in options.where or [])
    if options.export is not None:
        check_writable(options.export, EXPORTS, create=True)
        check_not_input(options.export, [options.store], "store")
    if options.store.suffix == ".gz" and (options.merge is not None or options.retry_failed):
        raise UsageError(
            f"{options.store} is packed and can only be read; unpack it with gunzip first"
        )
    return where


def _change(store: RunStore, options: RunsOptions, where: Row) -> None:
    """Merge another store and retry failed runs, where the options say so."""
    if options.merge is not None:
        count = store.merge(options.merge)
        print_message(f"{count} finished runs taken over from {options.merge}")
    if options.retry_failed:
        failed = store.runs(options.experiment, "failed", where)
        count = store.retry([run.key for run in failed])
        print_message(f"{count} failed runs are pending again")


def _rows(store: RunStore, options: RunsOptions, where: Row) -> list[Row]:
    """The runs that match; if there are none, UsageError for names that do not occur."""
    found = store.runs(options.experiment, options.status, where)
    if not found:
        everything = store.runs()
        if options.experiment is not None:
            experiments = {run.experiment for run in everything}
            _check_known(options.experiment, experiments, "no experiment is called")
        names = {name for run in everything for name in flat(run.config)}
        for name in flat(where):
            _check_known(name, names, "no configuration has")
    return [as_row(run, options.lists) for run in found]


def _distinguishing(rows: list[Row]) -> list[str]:
    """The columns that tell runs apart, and those of their results; of several experiments, those
    that are in all."""
    if not rows:
        return []
    kinds = {row["experiment"]: set(column_names([row])) for row in rows}
    for row in rows:
        kinds[row["experiment"]].update(row)
    shared = set.intersection(*kinds.values())
    names = [name for name in column_names(rows) if name in shared]
    inner = [name for name in names if name.startswith(("experiment", "status", "config."))]
    results = [name for name in names if name.startswith("result.")]
    varying = [name for name in inner if any(row.get(name) != rows[0].get(name) for row in rows)]
    after = [name for name in ("seconds", "error") if any(row.get(name) for row in rows)]
    return ["key", *varying, *results, *after]


def _check_known(name: str, names: Iterable[str], none: str) -> None:
    if names and name not in names:
        known = sorted(names)
        raise UsageError(f"{none} '{name}'{suggestion(name, known)}; there are: {', '.join(known)}")


def _full_name(name: str, names: list[str]) -> str:
    """A column by its full name, or without the config. or result. before it."""
    meant = [full for full in (name, f"config.{name}", f"result.{name}") if full in names]
    if not meant:
        short = [full.removeprefix("config.").removeprefix("result.") for full in names]
        raise UsageError(
            f"there is no column '{name}'{suggestion(name, short)}; there are: {', '.join(names)}"
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
