"""Settings for all tests."""

import os
import sys

import pytest
from hypothesis import settings

# Workers of pytest-xdist share the cores; hosts that take all of them in each worker mostly wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A loop's first call compiles it, so no example has a deadline. On a build server the examples are always the same.
settings.register_profile("boostlist", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("boostlist")


@pytest.fixture(autouse=True)
def _close_figures():
    """Close the figures that a test has left to pyplot, which keeps them for the tests that follow."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_modifyitems(items):
    """Run what starts processes of its own last: loops are on disk by then, and not compiled once per process."""
    items.sort(key=lambda item: item.path.name in ("test_distributed.py", "test_examples.py", "test_compare.py"))
