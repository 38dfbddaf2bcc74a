"""What one process has compiled, another finds: every loss, short lists and long ones, every metric and the reader."""

from __future__ import annotations

import os
import subprocess
import sys

COUNT = """
from numba.core import event
from boostlist.cli import warmup
with event.install_recorder("numba:compile") as recorder:
    for _, function, argument in warmup.parts():
        function(argument)
print(*(f"{found.data['dispatcher']}{found.data['args']}" for _, found in recorder.buffer if found.is_start), sep="\\n")
"""

CUT = """
import numpy as np
from numba.core import event
from boostlist import Queries
from boostlist.cli import warmup
from boostlist.losses import SmoothNDCG
warmup.compile_loss("smooth_ndcg")
with event.install_recorder("numba:compile") as recorder:
    for loss in (SmoothNDCG(), SmoothNDCG(k=3)):
        loss.bind(Queries.from_sizes(np.arange(1003) % 3, [3, 1000])).gradient_hessian(np.zeros(1003))
print(len(recorder.buffer))
"""


def test_warmup_compiles_what_a_cut_off_needs(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CUT], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "0"


def compiled_in_a_new_process():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_a_second_process_compiles_nothing():
    # The tests before this one have filled the cache. Those beside it write there too, and may undo an entry.
    seen = [compiled_in_a_new_process()]
    while seen[-1] and len(seen) < 3:
        seen.append(compiled_in_a_new_process())
    assert not seen[-1]
