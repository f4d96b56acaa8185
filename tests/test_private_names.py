"""Private names of other libraries: all are in the table of docs/versions.md, and all still exist."""

import ast
import contextlib
import importlib
import inspect
import pkgutil
import re
from functools import reduce

import pytest
from repository import ROOT

import modeling_gtransformer


FOLDERS = ("modeling_gtransformer", "train", "hub_cards")
PRIVATE = re.compile(r"_[a-zA-Z][a-zA-Z_]*")
# Calls whose string argument is the name of an attribute or of a field.
BY_NAME = {"getattr", "setattr", "hasattr", "get", "pop", "callback"}
# Methods of every named tuple, and what Python and torch add to classes.
HARMLESS = {"_asdict", "_fields", "_replace", "_abc_impl", "_backward_cls", "_is_protocol"}


def table() -> dict[str, tuple[str, str]]:
    """Owner and test of every private name in the table."""
    text = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(_\w+)` \| `([\w.]+)`[^|]*\|[^|]*\| `(tests/[\w/.]+)` \|$", text, re.MULTILINE)
    return {name: (owner, test) for name, owner, test in rows}


def names_in(tree: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a file defines, and the private ones that it uses of other objects."""
    defined, used = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
                defined.add(name)
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                used.add(name)
            case ast.ImportFrom(module=module, names=names, level=0):
                used |= {part for each in names for part in f"{module}.{each.name}".split(".")}
            case ast.Import(names=names):
                used |= {part for each in names for part in each.name.split(".")}
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                used.add(name)
            case ast.Dict(keys=keys):
                used |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=args) if function in BY_NAME:
                used |= {each.value for each in args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return defined, used


def overridden() -> set[str]:
    """The private names of other libraries' classes that classes of the package define anew."""
    names = set()
    for module in pkgutil.walk_packages(modeling_gtransformer.__path__, "modeling_gtransformer."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if cls.__module__ != module.name:
                continue
            others = [base for base in cls.__mro__ if not base.__module__.startswith("modeling_gtransformer")]
            names |= {name for name in vars(cls) if any(name in vars(base) for base in others)}
    return names


def test_every_private_name_is_in_the_table():
    """What is new there needs a reason, and a test of what it is used for."""
    files = [names_in(ast.parse(path.read_text("utf-8"))) for each in FOLDERS for path in (ROOT / each).rglob("*.py")]
    defined = set().union(*(of_file for of_file, _ in files))
    used = set().union(*(of_file for _, of_file in files)) - defined | overridden()
    assert {name for name in used if PRIVATE.fullmatch(name)} - HARMLESS == {*table()}


@pytest.mark.parametrize("name", table())
def test_upstream_still_has_it(name):
    owner, test = table()[name]
    assert (ROOT / test).is_file()
    module, *path = owner.split(".")
    for length in range(len(path), -1, -1):
        with contextlib.suppress(ImportError):
            place = reduce(getattr, path[length:], importlib.import_module(".".join([module, *path[:length]])))
            break
    # A key, or an attribute of instances, stands in the source only.
    is_there = hasattr(place, name) or re.search(rf"\b{name}\b", inspect.getsource(place))
    assert is_there, f"{owner} has no {name} any more: check {test}"
