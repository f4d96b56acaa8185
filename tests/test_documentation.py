"""Every command and every piece of code of README and of the documentation runs, on tiny models and files of the names
that they use. That references resolve, `make docs` checks."""

import ast
import contextlib
import importlib
import io
import json
import os
import re
import runpy
import socket
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Literal

import adapters
import pytest
import uvicorn
from command_lines import commands, run_command
from hub_fixtures import runner, runner_without_package, running_hub
from repository import ROOT
from workplace import LONGER, furnish

from modeling_gtransformer import GTransformerConfig, Translator
from modeling_gtransformer.runtime.translator import SMALL_MODEL
from modeling_gtransformer.training.recipe import read_recipe


DOCS = ROOT / "docs"
DOCUMENTED_ADDRESS = "http://127.0.0.1:5000"
# What a reader has a GPU and a night for.
SHORT = ["--max_steps", "2", "--use_cpu", "--disable_tqdm", "true", "--report_to", "none"]
SHORT += ["--max_tokens", "512", "--tokens_per_update", "512", "--num_train_epochs", "1"]


def blocks(page):
    """`(language, code)` of what runs on a page, in order; indented lines are commands."""
    pattern = r"^```(\w+)\n(.*?)^```$|((?:^    \S[^\n]*\n(?:^      [^\n]*\n)*)+)"
    for language, code, indented in re.findall(pattern, page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        code = code or textwrap.dedent(indented)
        if language == "python" or (language in ("bash", "") and commands(code)):
            yield language, code


PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
BLOCKS = [(page, number) for page in PAGES for number, _ in enumerate(blocks(page))]


class Place:
    """A reader's folder and session while a page is read: the names of its code, its server, its Hub."""

    def __init__(self, page, folder, hub):
        self.blocks, self.folder, self.names, self.servers = [*blocks(page)], folder, {}, []
        self.address, self.run, self.run_without_package = DOCUMENTED_ADDRESS, runner(hub, folder), None

    def serve(self, server):
        """Serves in a thread at a free port, which is where the page says that its server is."""
        sock = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{sock.getsockname()[1]}"
        self.servers.append((server, Thread(target=SERVE, args=(server, [sock]))))
        self.servers[-1][1].start()

    def close(self):
        for server, thread in self.servers:
            server.should_exit = True
            thread.join()

    def run_code(self, code):
        if "user/" in code:  # on the Hub, for others
            self.run_without_package = self.run_without_package or runner_without_package(self.run, self.folder)
            printed = self.run_without_package(code)
        else:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(code, "page", "exec"), self.names)
            printed = stream.getvalue()
        assert printed.strip() or "print(" not in code

    def run_words(self, words):
        if "publish" in words[1]:  # talks to the Hub
            helpers = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "helpers")])
            self.run(f"from command_lines import execute; execute({words!r})", PYTHONPATH=helpers)
        else:
            run_command(words + settings_of_training(words), piped="manual.txt")


SERVE = uvicorn.Server.run


def settings_of_training(words):
    """Settings that make a training short and its model tiny."""
    command = next((each for each in ("train", "train/train.py") if each in words), None)
    if command is None:
        return []
    values = read_recipe(words[words.index(command) + 1])
    if values.get("model_name_or_path"):
        return SHORT
    types = {name: kinds[:2] for name, kinds in values["config"].items() if name.endswith("_types")}
    return [*SHORT, "--config", json.dumps(LONGER | types)]


@contextlib.contextmanager
def opened(page, folder, *models):
    """The place of a page, which is left afterwards."""
    with pytest.MonkeyPatch.context() as patch, running_hub() as hub:
        patch.chdir(folder)
        furnish(*models)
        place = Place(page, folder, hub)
        patch.setattr(uvicorn.Server, "run", lambda server: place.serve(server))
        yield place
        place.close()


@pytest.fixture(scope="module")
def open_page(request, tmp_path_factory, mbart_tokenizer, sentence_level_checkpoint):
    """Returns the place of a page. What its blocks leave there stays until the next page."""
    places = {}

    def open_page(page):
        if page not in places:
            stack.close()
            places.clear()
            folder = tmp_path_factory.mktemp(page.stem)
            places[page] = stack.enter_context(opened(page, folder, mbart_tokenizer, sentence_level_checkpoint))
            if "import ray\n" in page.read_text("utf-8"):
                request.getfixturevalue("ray_cluster")  # its workers run in the folder where it is started
        return places[page]

    with contextlib.ExitStack() as stack:
        yield open_page


@pytest.mark.parametrize(
    ("page", "number"),
    BLOCKS,
    ids=lambda value: value.stem if isinstance(value, Path) else str(value + 1),
)
def test_block(open_page, page, number):
    place = open_page(page)
    language, code = place.blocks[number]
    if "lora" in code and adapters.refusal():
        return
    code = code.replace(DOCUMENTED_ADDRESS, place.address)
    if language == "python":
        place.run_code(code)
    else:
        for words in commands(code):
            place.run_words(words)


def strings_of_package():
    """Every string of the package's code but its docstrings; `…` stands for the fields of an f-string."""
    for file in (ROOT / "modeling_gtransformer").rglob("*.py"):
        nodes = {*ast.walk(ast.parse(file.read_text("utf-8")))}
        for node in nodes - {node.value for node in nodes if isinstance(node, ast.Expr)}:
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_messages_of_troubleshooting_are_in_the_code():
    strings = [*strings_of_package()]
    messages = re.findall(r"^\| `([^`]+)` \|", (DOCS / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    assert len(messages) > 20
    for message in messages:
        for part in filter(None, map(str.strip, message.split("…"))):
            assert any(part in string for string in strings), message


def test_the_example_shows_what_the_bundled_model_attends_to():
    drawn = runpy.run_path(str(DOCS / "draw_example.py"))["draw_example"]()
    assert drawn == (DOCS / "images/example.svg").read_text("utf-8"), "draw it again"


CARD = f"{SMALL_MODEL.relative_to(ROOT)}/README.md"


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", CARD, "hub_cards/space/README.md"])
def test_examples_are_translations_of_the_bundled_model(page):
    """Tables of sentences alone and in their document, and what commands and code print."""
    text, translate = (ROOT / page).read_text("utf-8"), Translator()
    shown, found = [], []
    for table in re.findall(r"^\| source \| each sentence alone \|.*\n.*\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [row.strip("| ").replace("*", "").split(" | ") for row in table.splitlines()]
        sources, *columns = zip(*rows, strict=True)
        shown += columns
        found.append(tuple(translate([source])["translation_text"] for source in sources))
        found.append(tuple(pair["translation_text"] for pair in translate(list(sources))["sentences"]))
    for language, code, printed in re.findall(r"```(\w+)\n([^`]*)```\n\n```text\n([^`]*)\n```", text):
        shown.append(printed)
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(code, page, "exec"), {})
            found.append(stream.getvalue().strip())
        else:
            [piped] = re.findall(r'^printf "(.*)\\n" \| gtransformer translate$', code, re.MULTILINE)
            found.append(translate(piped.replace("\\n", "\n"))["translation_text"])
    assert shown and found == shown


@pytest.fixture
def docstrings(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module("markdown_docstrings")


def test_docstrings_become_rest(docstrings):
    docstring = """Adds `1`, see [`group_tags`].

    Args:
        number, other (`int`, defaults to 7): what is
            added.

    Returns:
        A sum: `int`.

    ```python
    >>> add(1)  # `code`
    ```"""
    rest = docstrings.to_rest(docstring)
    assert "Adds ``1``, see :py:func:`~.group_tags`." in rest
    assert ":Parameters:\n    * **number, other** – what is added.\n" in rest
    assert ":Returns: A sum: ``int``.\n" in rest
    assert ".. code-block:: pycon\n\n    >>> add(1)  # `code`\n" in rest
    with pytest.raises(ValueError, match="no `name: text`"):
        docstrings.to_rest("Adds.\n\n    Args:\n        a number\n")


def test_fields_of_the_configuration_have_their_defaults(docstrings):
    lines = GTransformerConfig.__doc__.splitlines()
    docstrings.convert(None, "class", "GTransformerConfig", GTransformerConfig, None, lines)
    assert any("**init_std** (``float | None = 0.02``)" in line for line in lines)
    for name in GTransformerConfig.__annotations__:
        assert sum(bool(re.search(rf"\*\*{name}\*\*|^ +{name}: ", line)) for line in lines) == 1, name


@dataclass
class Options:
    """Options of a test."""

    file: str = field(metadata={"help": "Input.", "argument": True})
    limit: int = field(default=0, metadata={"help": "Largest `number`."})
    language: str | None = field(default=None, metadata={"help": "Language; default: the model's."})
    kind: Literal["a", "b"] | None = field(default="a", metadata={"help": "Kind."})
    names: tuple[str, ...] = field(default=(), metadata={"help": "Names."})
    check: bool = field(default=True, metadata={"help": "Check the input."})
    hidden: bool = field(default=True, metadata={"help": "Not shown.", "on_command_line": False})


def test_tables_have_every_option(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    tables = importlib.import_module("argument_tables")
    assert dict(tables.of_dataclass(Options, is_command=True)) == {
        "FILE": "Input.",
        "--limit": "Largest ``number``; default: ``0``.",
        "--language": "Language; default: the model's.",
        "--kind": "Kind; default: ``a``. One of ``a``, ``b``.",
        "--names": "Names.",
        "--check": "Check the input; ``--no-check`` turns it off.",
    }
    assert [name for name, _ in tables.of_dataclass(Options)] == [*Options.__annotations__]


def test_groups_of_options_are_complete(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    tables = importlib.import_module("argument_tables")
    rows = {"FILE": "Input.", "--limit": "Largest number.", "--kind": "Kind."}
    groups = tables.in_groups(rows, ["Input: file", "Other: kind limit"])
    assert groups == {"Input": {"FILE": "Input."}, "Other": {"--kind": "Kind.", "--limit": "Largest number."}}
    for lines in (["Input: file kind"], ["Input: file kind limit", "Other: kind"], ["All: file limit kind size"]):
        with pytest.raises(ValueError, match="Groups have the options"):
            tables.in_groups(rows, lines)
