"""Files of others: archives of PyPI, npm and Debian, and the samples in them."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from modeling_gtransformer.files import EXTENSIONS


APT = """deb-src http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm main
"""


class Sample(NamedTuple):
    """A file that others made, or one of several in such a file."""

    source: str
    name: str
    format: str
    content: bytes


def archives(kind: str, package: str, folder: Path) -> list[Path]:
    """Returns the archives of a package, which are downloaded unless the folder has them."""
    if not list(folder.glob("*")):
        folder.mkdir(parents=True, exist_ok=True)
        globals()[f"_{kind.replace('-', '_')}"](package, folder)
    return sorted(path for path in folder.glob("*") if path.suffix in (".gz", ".xz", ".tgz", ".deb"))


def samples(source: str, archive: Path, readers: dict[str, str]) -> Iterator[Sample]:
    """Yields the samples of an archive."""
    for name, content in _members(archive):
        reader = next((function for pattern, function in readers.items() if fnmatch(name, pattern)), None)
        format = EXTENSIONS.get(Path(name).suffix.lower(), "text")
        if reader:
            for number, (own_format, sample) in enumerate(READERS[reader](content.decode(errors="replace")), 1):
                yield Sample(source, f"{name}#{number}", own_format, sample.encode())
        elif format != "text":
            yield Sample(source, name, format, content)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    content = archive.read_bytes()
    if archive.suffix == ".deb":
        content = _run("dpkg-deb", "--fsys-tarfile", str(archive))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            if member.isfile():
                yield member.name, tar.extractfile(member).read()


def _pypi(package: str, folder: Path) -> None:
    name = package.partition("==")[0]
    options = ("--quiet", "--no-deps", "--no-binary", name, "--dest", str(folder))
    command = (sys.executable, "-m", "pip", "download", *options, package)
    try:
        _run(*command)
    except subprocess.CalledProcessError:
        # pip prepares what it downloads, which takes an old setuptools for old packages.
        constraint = folder.parent / "constraint.txt"
        constraint.write_text("setuptools<81\n")
        _run(*command, PIP_CONSTRAINT=str(constraint), PIP_BUILD_CONSTRAINT=str(constraint))


def _npm(package: str, folder: Path) -> None:
    _run("npm", "pack", "--silent", "--pack-destination", str(folder), package)


def _debian_source(package: str, folder: Path) -> None:
    _apt(folder, "source", "--download-only", "--tar-only", package)


def _debian(package: str, folder: Path) -> None:
    _apt(folder, "download", package)


def _apt(folder: Path, *words: str) -> None:
    """Runs `apt-get` with lists of packages of its own, which needs no privileges."""
    state = folder.parent / "apt"
    options = [
        f"-oDir::Etc::SourceList={state / 'sources.list'}", "-oDir::Etc::SourceParts=-", "-qq",
        f"-oDir::State::Lists={state / 'lists'}", f"-oDir::Cache={state}",
    ]  # fmt: skip
    if not state.exists():
        (state / "lists" / "partial").mkdir(parents=True)
        (state / "sources.list").write_text(APT)
        _run("apt-get", *options, "update")
    subprocess.run(["apt-get", *options, *words], cwd=folder, check=True)


def _run(*command: str, **environment: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **environment}).stdout


def _tree_construction(text: str) -> list[tuple[str, str]]:
    return [("html", each) for each in re.findall(r"^#data\n(.*?)\n#errors", text, re.DOTALL | re.MULTILINE)]


def _tokenizer(text: str) -> list[tuple[str, str]]:
    tests = json.loads(text).get("tests", [])
    return [("html", test["input"]) for test in tests if not test.get("doubleEscaped")]


def _fixtures(text: str) -> list[tuple[str, str]]:
    return [("markdown", each) for each in re.findall(r"^\.\n(.*?)^\.\n.*?^\.\n", text, re.DOTALL | re.MULTILINE)]


def _specification(text: str) -> list[tuple[str, str]]:
    examples = re.findall(r"^`{32} example\n(.*?)^\.\n.*?^`{32}", text, re.DOTALL | re.MULTILINE)
    return [("markdown", each.replace("→", "\t")) for each in examples]


def _without_targets(text: str) -> list[tuple[str, str]]:
    return [("xliff", text), ("xliff", re.sub(r"\s*<target.*?</target>", "", text, flags=re.DOTALL))]


def _nothing(text: str) -> list[tuple[str, str]]:
    return []


READERS = {
    "nothing": _nothing,
    "tree_construction": _tree_construction,
    "tokenizer": _tokenizer,
    "fixtures": _fixtures,
    "specification": _specification,
    "without_targets": _without_targets,
}
