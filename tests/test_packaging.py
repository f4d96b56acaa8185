"""What is built and installed: every file is there, and without an extra the commands say which one they need."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from configparser import ConfigParser
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT

from modeling_gtransformer import __version__


REPOSITORY = "https://github.com/user/gtransformer"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the wheel and the source distribution."""
    source, output = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    shutil.copytree(
        ROOT / "modeling_gtransformer", source / "modeling_gtransformer", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    links = [sys.executable, str(ROOT / ".ci" / "absolute_links.py"), REPOSITORY, "v1.0"]
    subprocess.run(links, cwd=source, check=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), str(source)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return output


def closure(requirements):
    """The distributions that these requirements install, by name, of those that are installed here."""
    found, todo = {}, [(Requirement(text), {""}) for text in requirements]
    while todo:
        requirement, extras = todo.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        distribution = metadata.distribution(requirement.name)
        new = not found.get(distribution.name) or not requirement.extras <= found[distribution.name][1]
        if new:
            found[distribution.name] = distribution, set(requirement.extras)
            todo += [(Requirement(text), {"", *requirement.extras}) for text in distribution.requires or []]
    return [distribution for distribution, _ in found.values()]


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """The folder of an environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    [wheel] = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    # On the path, a checkout would count as installed.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True, env=variables)
    return folder


@pytest.fixture
def install(environment, tmp_path):
    """Adds what an extra needs to the environment, and returns a function that runs a command in it."""

    def make(extra=""):
        packages = tmp_path / "packages"
        packages.mkdir()
        [distribution] = metadata.distributions(
            name="gtransformer-hf", path=map(str, environment.glob("lib/*/site-packages"))
        )
        own = [Requirement(text) for text in distribution.requires]
        wanted = [str(r) for r in own if not r.marker or r.marker.evaluate({"extra": extra})]
        for needed in closure([text.partition(";")[0] for text in wanted]):
            for top in {file.parts[0] for file in needed.files if file.parts[0] not in ("..", "__pycache__")}:
                if not (packages / top).exists():
                    (packages / top).symlink_to(needed.locate_file(top))

        def run(*words):
            command = [str(environment / "bin" / words[0]), *words[1:]]
            variables = {**os.environ, "PYTHONPATH": str(packages)}
            return subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)

        return run

    return make


def test_every_file_is_built(built):
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"gtransformer_hf-{__version__}-")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "modeling_gtransformer"
    expected = {str(file.relative_to(ROOT)) for file in package.rglob("*.py")}
    expected |= {"modeling_gtransformer/py.typed", "modeling_gtransformer/training/model_card.md"}
    model = package / "models" / "dialogues-en-de"
    expected |= {str(file.relative_to(ROOT)) for file in model.iterdir() if file.is_file()}
    assert expected <= names
    assert {name.split("/")[0] for name in names} == {
        "modeling_gtransformer",
        f"gtransformer_hf-{__version__}.dist-info",
    }
    with tarfile.open(sdist) as archive:
        assert {"/".join(name.split("/")[1:]) for name in archive.getnames()} >= expected


def test_links_on_a_package_index_are_absolute(built):
    """Links lead to the tag's pages and files, the image to the file itself."""
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [metadata_file] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        targets = re.findall(r"\]\(([^)]+)\)", archive.read(metadata_file).decode())
    assert not [target for target in targets if not target.startswith(("https://", "#"))]
    own = [target.removeprefix(f"{REPOSITORY}/") for target in targets if target.startswith(REPOSITORY)]
    files = [target.partition("#")[0] for target in own]
    assert "raw/v1.0/docs/images/example.svg" in own and "blob/v1.0/CONTRIBUTING.md" in own
    assert all((ROOT / file.split("/", 2)[2]).is_file() for file in files)


IMPORTS = """
import importlib
for part in ("corpora", "evaluation", "training"):
    try:
        importlib.import_module(f"modeling_gtransformer.{part}")
    except ImportError as error:
        print(error)
"""


def test_without_extras(install, checkpoint, tmp_path):
    run = install()
    assert run("gtransformer-translate", "--version").stdout.endswith(f" {__version__}\n")
    (tmp_path / "a.txt").write_text("the cat\nit is\n")
    (tmp_path / "a.md").write_text("the *cat*\n")
    text = run("gtransformer-translate", "a.txt", "--model", checkpoint)
    assert text.returncode == 0 and text.stdout.count("\n") == 2, text.stderr
    markdown = run("gtransformer-translate", "a.md", "--model", checkpoint, "--splitter", "line")
    assert markdown.returncode == 1 and "pip install" in markdown.stderr and "Traceback" not in markdown.stderr
    assert run("python", "-c", IMPORTS).stdout.count("pip install 'gtransformer-hf[train]'") == 3


def test_with_files_but_without_server(install, checkpoint, tmp_path):
    (tmp_path / "a.md").write_text("*the cat.* it is.\n")
    run = install("files")
    result = run("gtransformer-translate", "a.md", "--model", checkpoint)
    assert result.returncode == 0 and result.stdout.count("*") == 2, result.stderr
    server = run("gtransformer-serve", "--model", checkpoint)
    assert server.returncode == 2 and "pip install 'gtransformer-hf[files,serve]'" in server.stderr
    assert "Traceback" not in server.stderr


def test_with_server(install, checkpoint):
    """It loads its model; what finds sentences by default is of another extra."""
    result = install("serve")("gtransformer-serve", "--model", checkpoint)
    assert result.returncode == 2 and "pip install sentencex babel (or use --splitter line" in result.stderr, (
        result.stderr
    )


def test_with_training(install):
    code = "from modeling_gtransformer.training import GTransformerTrainer as T; print(T)"
    result = install("train")("python", "-c", code)
    assert "trainer.GTransformerTrainer" in result.stdout, result.stderr


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
@pytest.mark.parametrize("lock", ["constraints.txt", "constraints-oldest.txt"])
def test_locks_follow_the_requirements(lock, python):
    """A requirement that is new or raised needs `make lock`."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    sections = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    requirements = [Requirement(line) for section in sections for line in section.split("\n") if line]
    pins = [Requirement(line) for line in (ROOT / lock).read_text().splitlines() if not line.startswith("#")]
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    pins = [pin for pin in pins if not pin.marker or pin.marker.evaluate(environment)]
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert len(pins) == len(versions) > 100
    unlocked = [r for r in requirements if versions.get(canonicalize_name(r.name), "none") not in r.specifier]
    assert not unlocked, "make lock"


def test_versions_are_one():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    "tag, heading, expected",
    [
        (f"v{__version__}", f"## [{__version__}] - 2026-01-31", "### Added\n\n- This.\n"),
        ("v99.0", "## [99.0]", f"The tag is v99.0, the package's version {__version__}"),
        (f"v{__version__}", "## [Unreleased]", f"no section [{__version__}]"),
        (f"v{__version__}", f"## [{__version__}]\n\n## [0.0.1]", f"no section [{__version__}]"),
    ],
    ids=["released", "another version", "unnamed", "empty"],
)
def test_notes_of_a_release(tmp_path, tag, heading, expected):
    (tmp_path / "modeling_gtransformer").mkdir()
    shutil.copy(ROOT / "modeling_gtransformer" / "hub.py", tmp_path / "modeling_gtransformer")
    changelog = f"# Changelog\n\n{heading}\n\n### Added\n\n- This.\n\n## [0.0.0]\n\n- Old.\n"
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    command = [sys.executable, str(ROOT / ".ci" / "release_notes.py"), tag]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if heading.endswith("31"):
        assert process.stdout == expected, process.stderr
    else:
        assert process.returncode == 1 and expected in process.stderr and not process.stdout
