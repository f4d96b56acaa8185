"""Fixtures of a Hub that stands in for the real one, of processes that talk to it, and of what was downloaded."""

import os
import subprocess
import sys
import sysconfig
import threading
import venv
from contextlib import contextmanager

import huggingface_hub
import pytest
from hub_stand_in import HubStandIn


@contextmanager
def running_hub():
    server = HubStandIn()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def runner(hub, folder):
    """A function that runs Python code that talks to the stand-in, in a process of its own that works in a folder."""

    def run(code, python=sys.executable, **environment):
        # No uploads by chunks: the stand-in takes whole files.
        own = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_token", "HF_HOME": str(folder / "home")}
        own |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONPATH": ""}
        command = [python, "-c", code]
        process = subprocess.run(
            command, env=os.environ | own | environment, cwd=folder, capture_output=True, text=True
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


def runner_without_package(run, folder):
    """The same in a fresh environment that has all of this one but what is installed from a working copy."""
    venv.create(folder / "clean", with_pip=False)
    python = folder / "clean" / "bin" / "python"
    # The path files of a folder, by which working copies are found, count only in the environment's own folder.
    packages = sysconfig.get_path("purelib")

    def run_without_package(code, *folders, **environment):
        return run(code, str(python), PYTHONPATH=os.pathsep.join([packages, *folders]), **environment)

    assert "no package" in run_without_package(
        "import importlib.util as u; print('no package' if u.find_spec('modeling_gtransformer') is None else '')"
    )
    return run_without_package


@pytest.fixture
def hub():
    with running_hub() as server:
        yield server


@pytest.fixture
def run(hub, tmp_path):
    return runner(hub, tmp_path)


@pytest.fixture
def run_without_package(run, tmp_path):
    return runner_without_package(run, tmp_path)


@pytest.fixture
def news_corpus(tmp_path, monkeypatch):
    """The folder of the paper's news corpus in the Hub's cache, as it is after a download."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "datasets--gshbao--DocNMT"
    files = folder / "snapshots" / "0123456789abcdef0123456789abcdef01234567" / "nc2016"
    files.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(files.parent.name)
    for split in ("train", "dev", "test"):
        for language in ("en", "de"):
            text = f"<d>\n{split} {language} one .\ntwo .\n<d>\nthree .\n"
            (files / f"concatenated_en2de_{split}_{language}.txt").write_text(text)
    return files
