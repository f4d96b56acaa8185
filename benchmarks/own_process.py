"""Figures of a process of its own, in which nothing was computed before, and its memory (Linux)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_alone(*arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Runs the script that calls this with other arguments, and returns the figures of its [`report`]."""
    command = [sys.executable, sys.argv[0], *arguments]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def report(figures: dict[str, Any]) -> None:
    """Prints the figures of this process for the one that started it, in a line of their own."""
    print("\n" + json.dumps(figures), flush=True)


def memory_mb(kind: str, process: int | None = None) -> float:
    """Megabytes of a process, by default of this one: "VmHWM" at its peak, "RssAnon" what no file backs now."""
    # Not getrusage: its maximum includes that of the process which started this one.
    status = Path(f"/proc/{process or 'self'}/status").read_text()
    return int(status.split(f"{kind}:")[1].split()[0]) * 1024 / 1e6
