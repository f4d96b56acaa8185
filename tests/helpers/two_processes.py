"""A command on two processes, as `accelerate launch` starts them on machines without a GPU."""

import os
import socket
import subprocess
import sys

from repository import ROOT


ENVIRONMENT = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(ROOT)}


def run_on_two_processes(script, *arguments):
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launch, str(script), *map(str, arguments)]
    process = subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr[-3000:]


def run_on_two_machines(disks, script, *arguments):
    """One process on each machine; a machine works in the folder that is its disk, and has its cache there."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        rendezvous = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    command = [sys.executable, str(script), *map(str, arguments)]
    machines = []
    for rank, disk in enumerate(disks):
        disk.mkdir()
        own = {"RANK": str(rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "HF_DATASETS_CACHE": str(disk / "cache")}
        environment = os.environ | ENVIRONMENT | rendezvous | own
        machines.append(subprocess.Popen(command, env=environment, cwd=disk, stderr=subprocess.PIPE, text=True))
    for machine in machines:
        _, errors = machine.communicate(timeout=240)
        assert machine.returncode == 0, errors[-3000:]
