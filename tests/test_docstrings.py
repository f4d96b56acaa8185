"""The examples in docstrings give what they say; those that need a trained model are marked `# doctest: +SKIP`."""

import doctest
import importlib
import re

import pytest
from repository import ROOT

from modeling_gtransformer.files import borders, occurrences, runs


class FencedParser(doctest.DocTestParser):
    """Takes a fence of Markdown as the end of an example, not as a part of what it gives."""

    def parse(self, string, name="<string>"):
        return super().parse(re.sub(r"^\s*```\w*$", "", string, flags=re.MULTILINE), name)


def docstrings(module):
    """The docstrings of a module with their examples, but not those that Python itself adds to a class."""
    found = doctest.DocTestFinder(parser=FencedParser(), exclude_empty=False).find(module)
    return [docstring for docstring in found if not docstring.name.endswith("__")]


def has_examples_to_run(module):
    examples = [example for docstring in docstrings(module) for example in docstring.examples]
    return not all(example.options.get(doctest.SKIP) for example in examples)


FILES = [file for file in sorted((ROOT / "modeling_gtransformer").rglob("*.py")) if ">>> " in file.read_text()]
MODULES = [importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)) for file in FILES]


@pytest.mark.parametrize("module", [*filter(has_examples_to_run, MODULES)], ids=lambda module: module.__name__)
def test_examples(module):
    runner = doctest.DocTestRunner()
    for docstring in docstrings(module):
        runner.run(docstring)
    results = runner.summarize()
    assert results.attempted and not results.failed


def test_every_heuristic_of_runs_has_an_example():
    modules = (runs, borders, occurrences)
    without = {docstring.name for module in modules for docstring in docstrings(module) if not docstring.examples}
    assert without == {module.__name__ for module in modules}
    assert sum(len(docstrings(module)) for module in modules) > 15
