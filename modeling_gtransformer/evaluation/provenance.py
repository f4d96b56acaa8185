"""Provenance of figures and trainings: command, commit, hardware, versions."""

import os
import platform
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import torch
import transformers

from ..hub import __version__
from ..runtime.atomic_file import read_json, write_json


# Folder of the code: a checkout, or the installation folder.
ROOT = Path(__file__).resolve().parents[2]
STARTS_NAME = "starts.json"


def provenance(command: list[str]) -> dict[str, Any]:
    """Returns command, commit, hardware and versions for the figures of `python *command`, with paths relative to the
    root of the code."""
    script = Path(command[0]).resolve()
    if script.is_relative_to(ROOT):
        command = [str(script.relative_to(ROOT)), *command[1:]]
    return {"command": shlex.join(["python", *command]), **origin()}


def origin() -> dict[str, Any]:
    """Returns commit, hardware and versions of the running code."""
    return {
        "commit": commit_of(ROOT),
        "hardware": _hardware(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def keep_start(folder: Path, checkpoint: str | None) -> None:
    """Records the origin of a training in its folder, after those of the training whose checkpoint it continues."""
    before = read_starts(Path(checkpoint).parent) if checkpoint else []
    write_json(folder / STARTS_NAME, [*before, origin()])


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Returns the origin of each start of a training, because other code may have continued it."""
    return read_json(folder / STARTS_NAME, [])


def commit_of(checkout: Path) -> str:
    """
    Returns the commit of a checkout, marked as dirty if anything but result files has changed or code is untracked.
    Without a readable repository, returns the version of the package.
    """
    if not (checkout / ".git").exists():
        return f"version {__version__}"
    try:
        commit = _git(checkout, "describe", "--always", "--abbrev=7")
        changed = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", ":!*/results/*")
        changed = changed or _git(checkout, "ls-files", "--others", "--exclude-standard", "--", "*.py", "*.yaml")
        return f"{commit}-dirty" if changed else commit
    except (FileNotFoundError, subprocess.CalledProcessError):  # no git, or an unsafe checkout
        return f"version {__version__}"


def _git(checkout: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(checkout), *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def _hardware() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    info, threads = Path("/proc/cpuinfo"), torch.get_num_threads()
    names = re.findall(r"^model name\s*: (.*)", info.read_text(), re.MULTILINE) if info.exists() else []
    cpu = names[0] if names else platform.machine()
    return f"{cpu}, {threads} {'thread' if threads == 1 else 'threads'} of {os.cpu_count()} cores"
