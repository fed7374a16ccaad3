"""The finished runs of a study, or the sentence that there are none."""

from typing import Any

from nngp.errors import NothingMeasuredError
from nngp.runs import Run, RunStore
from nngp.runs.key import key_of
from nngp.runs.study import Study


def finished(store: RunStore, study: Study) -> list[Run]:
    """Those that the store has of just these configurations, in the order of the study."""
    keys = [key_of(study.experiment, config) for config in study.configs]
    found = {run.key: run for run in store.runs(study.experiment, "done", keys=keys)}
    if not found:
        raise NothingMeasuredError(
            f"{store.path} has no finished run of {study.experiment!r} with these options; "
            "run nngp reproduce with this part first"
        )
    return [found[key] for key in keys if key in found]


def result_of(run: Run) -> dict[str, Any]:
    """What a finished run measured."""
    assert run.result is not None
    return run.result
