"""Runs the checks of a device that is not the CPU: what works there, and how often the code synchronises with it."""

import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration


@pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch cannot register a device that is written in Python",
)
def test_a_device_that_is_not_the_cpu():
    """In a process of its own, as torch takes the stand-in for the accelerator of the machine."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--import-mode=prepend",  # the checks import the stand-in beside them
        "helpers/other_device/checks.py",
    ]
    result = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
