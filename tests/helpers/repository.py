"""Where the repository is, and the folder that processes need on their path to import it."""

from pathlib import Path


ROOT = Path(__file__).resolve().parents[2]
