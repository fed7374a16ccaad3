"""No run waits for ever: what takes longer than its limit ends its process, which first says where
each of its threads is.

The time is kept by `faulthandler`, outside of the interpreter, so it passes whatever a test waits
for: a lock, another process, a library that never returns. Under pytest-xdist the process is a
worker; then the run names the test, counts it as failed and does the others.
"""

import faulthandler
import os
from contextlib import contextmanager

import pytest

SECONDS, SLOW_SECONDS, DEEP_SECONDS = 300, 1200, 7200  # of each: setting up, the test, tearing down
ENDING = 120  # from the last test to the end of the process


class Limits:
    """A plugin, as hooks of a conftest.py would be for the tests beside it only."""

    def __init__(self):
        self._stderr = os.dup(2)  # what tests write is captured

    def _begin(self, seconds):
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._stderr)

    @contextmanager
    def _within(self, seconds):
        self._begin(seconds)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _of(self, item):
        limits = {"deep": DEEP_SECONDS, "slow": SLOW_SECONDS}
        marked = [seconds for name, seconds in limits.items() if item.get_closest_marker(name)]
        return self._within(max(marked, default=SECONDS))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self):
        with self._within(SECONDS):
            return (yield)

    # One by one: pytest stops the clock after a failure, and tearing down may hang because of it.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        with self._of(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        with self._of(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        with self._of(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self):
        with self._within(ENDING):
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config):
        if not hasattr(config, "workerinput"):  # workers stay until all are done, and are ended
            self._begin(ENDING)
