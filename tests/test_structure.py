"""The house: what travels with a checkpoint, and which way imports point."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from repository import ROOT
from transformers.dynamic_module_utils import get_relative_import_files


PACKAGE = ROOT / "modeling_gtransformer"
# What the commands are made of, each of what stands before it.
LIBRARY = ("corpora", "evaluation", "training")


def carried(module):
    """Files that Transformers uploads for a class of the module."""
    file = str(PACKAGE / f"{module}.py")
    return {Path(name).name for name in (file, *get_relative_import_files(file))}


@pytest.mark.parametrize(
    "module, most",
    [("configuration_gtransformer", 2), ("processing_gtransformer", 5), ("modeling_gtransformer", 20)],
)
def test_a_checkpoint_carries_only_what_it_needs(module, most):
    files = carried(module)
    assert len(files) <= most, sorted(files)
    assert "pipeline_gtransformer.py" not in files


def test_the_pipeline_brings_its_own_code():
    files = carried("pipeline_gtransformer")
    assert {"document_translation.py", "plain_text.py", "terminology.py"} <= files
    # What is searched for in sub-folders would be a file that does not exist.
    assert all((PACKAGE / name).is_file() for name in files)


def test_importing_the_package_loads_no_file_formats(run):
    code = "import sys, modeling_gtransformer; print([name for name in sys.modules if name.startswith({!r})])"
    assert run(code.format("modeling_gtransformer.files"), PYTHONPATH=str(ROOT)).strip() == "[]"


def modules():
    """Every module of the package and every script, by its dotted name."""
    folders = ("modeling_gtransformer", "train", "hub_cards", "benchmarks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imported(name, file, known):
    """The known modules that a module imports, anywhere in it."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
        for other in found:
            sibling = ".".join([*package, other])  # scripts of a folder see each other
            other = sibling if package[:1] == ["benchmarks"] and sibling in known else other
            if other in known and other != name:
                yield other


def test_imports_have_no_circle():
    known = modules()
    graph = {name: set(imported(name, file, known)) for name, file in known.items()}
    assert graph["modeling_gtransformer.layers_gtransformer"] >= {"modeling_gtransformer.group_attention"}
    TopologicalSorter(graph).prepare()


def test_imports_point_down():
    known = modules()
    for name, file in known.items():
        others = set(imported(name, file, known))
        place = name.split(".")
        if place[0] == "modeling_gtransformer":
            assert not any(other.startswith(("train", "hub_cards", "benchmarks")) for other in others), name
            if place[1:2] != ["server"]:
                assert not any(other.startswith("modeling_gtransformer.server") for other in others), name
            above = LIBRARY[LIBRARY.index(place[1]) + 1 :] if place[1:] and place[1] in LIBRARY else LIBRARY
            assert not any(other.split(".")[1:2] == [part] for other in others for part in above), name
            if place[1:2] not in (["cli"], ["server"]):
                assert not any(other.startswith("modeling_gtransformer.cli") for other in others), name
            if place[1:2] not in (["files"], ["cli"], ["server"], ["pipeline_gtransformer"], ["translator"]):
                assert not any(other.startswith("modeling_gtransformer.files") for other in others), name
        elif place[0] in ("train", "hub_cards"):
            # Commands share code through the package only.
            assert all(other.startswith("modeling_gtransformer") for other in others), name


def test_names_of_test_files_are_unique():
    """pytest imports them by their names alone."""
    names = [file.stem for file in (ROOT / "tests").rglob("*.py") if file.stem != "conftest"]
    assert len(set(names)) == len(names)
