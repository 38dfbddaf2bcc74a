"""Settings for all tests."""

import os

from hypothesis import settings

# A kernel's first call compiles it, so no example has a deadline. On a build server the examples are always the same.
settings.register_profile("boostlist", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("boostlist")
