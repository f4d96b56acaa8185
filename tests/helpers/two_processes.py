"""A command on two processes, as `accelerate launch` starts them on a machine without a GPU."""

import os
import subprocess
import sys

from repository import ROOT


def run_on_two_processes(script, *arguments):
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(ROOT)}
    command = [*launch, str(script), *map(str, arguments)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr[-3000:]
