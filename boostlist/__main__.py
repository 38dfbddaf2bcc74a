"""``python -m boostlist`` is ``boostlist``."""

from __future__ import annotations

import sys

from boostlist.cli import main

if __name__ == "__main__":
    sys.exit(main())
