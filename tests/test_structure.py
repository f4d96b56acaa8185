"""What travels with a checkpoint lies flat, imports point down, and the package loads only what it needs."""

import ast
from graphlib import TopologicalSorter
from importlib.util import resolve_name

import pytest
from repository import ROOT
from transformers.dynamic_module_utils import get_relative_import_files


PACKAGE = ROOT / "modeling_gtransformer"
# The most files that a checkpoint carries for each class.
CARRIED = {"configuration_gtransformer": 2, "processing_gtransformer": 5, "modeling_gtransformer": 16}
PUBLISHED = (*CARRIED, "pipeline_gtransformer")
# Folders of the package, and the parts of it that may import them.
IMPORTERS = {
    "runtime": {"", "runtime", "files", "corpora", "evaluation", "training", "cli", "server"},
    "files": {"files", "runtime", "cli", "server", "pipeline_gtransformer"},
    "corpora": {"corpora", "evaluation", "training", "cli"},
    "evaluation": {"evaluation", "training", "cli"},
    "training": {"training", "cli"},
    "server": {"server", "cli"},
    "cli": {"cli", "server"},
}


def carried(module):
    """Files that Transformers uploads for a class of the module."""
    file = str(PACKAGE / f"{module}.py")
    return {name.removeprefix(f"{PACKAGE}/") for name in (file, *get_relative_import_files(file))}


@pytest.mark.parametrize(("module", "number"), CARRIED.items())
def test_a_checkpoint_carries_few_files(module, number):
    files = carried(module)
    assert len(files) <= number, sorted(files)
    assert "pipeline_gtransformer.py" not in files


def test_what_travels_lies_flat_and_nothing_else_does():
    published = set().union(*map(carried, PUBLISHED))
    flat = {file.name for file in PACKAGE.glob("*.py")} - {"__init__.py"}
    assert published <= flat, "Transformers does not find what it carries from sub-folders"
    assert flat - published == set(), "what does not travel belongs in a sub-folder"


def test_importing_the_package_loads_no_file_formats(run):
    code = "import sys, modeling_gtransformer; print([name for name in sys.modules if name.startswith({!r})])"
    assert run(code.format("modeling_gtransformer.files"), PYTHONPATH=str(ROOT)).strip() == "[]"


def modules():
    """Every module of the package and every script, by its dotted name."""
    folders = ("modeling_gtransformer", "train", "hub_cards", "benchmarks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imports():
    """The modules of the project that each of them imports, anywhere in it."""
    known, graph = modules(), {}
    for name, file in known.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        names = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = resolve_name("." * node.level + (node.module or ""), package)
                names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        if package == "benchmarks":  # its scripts see each other
            names |= {f"benchmarks.{each}" for each in names}
        found = names & known.keys() - {name}
        # Of a package and its module, the module is what is imported.
        graph[name] = {each for each in found if not any(other.startswith(f"{each}.") for other in found)}
    return graph


def test_imports_have_no_circle():
    graph = imports()
    assert graph["modeling_gtransformer.layers_gtransformer"] >= {"modeling_gtransformer.group_attention"}
    TopologicalSorter(graph).prepare()


def test_imports_point_down():
    for name, others in imports().items():
        top, part = (*name.split("."), "")[:2]
        for other in others:
            other_top, other_part = (*other.split("."), "")[:2]
            if top == "modeling_gtransformer":
                assert other_top == top and part in IMPORTERS.get(other_part, {part}), f"{name} imports {other}"
            elif top != "benchmarks":  # commands share code through the package only
                assert other_top == "modeling_gtransformer", f"{name} imports {other}"
