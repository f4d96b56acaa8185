"""Command lines of documents, run in this process as a shell would run them."""

import argparse
import contextlib
import glob
import io
import re
import runpy
import shlex
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import httpx
from repository import ROOT


SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg")
SCRIPTS = dict(line.split(" = ") for line in SETUP["options.entry_points"]["console_scripts"].strip().splitlines())
PROGRAMS = ("accelerate", "python", "curl", "man", "printf", *SCRIPTS)


def commands(code):
    """The command lines of a block, split into words: continued lines are one, comments are left out."""
    lines = re.sub(r"\\\n\s*", " ", code).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.split(" ")[0] in PROGRAMS]


def execute(words):
    """Runs a command, and checks that it ends well."""
    if words[0] == "accelerate":
        words = ["python", *words[words.index("launch") + 1 :]]
        words = ["python", *words[3:]] if words[1] == "--config_file" else words
    sys.argv = words if words[0] in SCRIPTS else words[1:]
    try:
        if words[0] in SCRIPTS:
            module, _, function = SCRIPTS[words[0]].partition(":")
            status = getattr(import_module(module), function)()
        else:
            status = runpy.run_path(words[1], run_name="__main__") and 0
    except SystemExit as end:
        status = end.code
    assert not status, f"{words}: {status}"


def run_command(words, piped):
    """Runs a command with what it writes to: a file, or `printed.txt`; the last of a pipe reads the file `piped`."""
    if "|" in words:
        words = words[len(words) - words[::-1].index("|") :]
    elif words[0] == "curl":
        assert curl(words[1:]), words
        return
    output, before = "printed.txt", written()
    if ">" in words:
        output = words[words.index(">") + 1]
        words = words[: words.index(">")]
    words = [file for word in words for file in (sorted(glob.glob(word)) or [word])]
    argv, stdin = sys.argv, sys.stdin
    with (
        open(output, "wb") as raw,
        io.TextIOWrapper(raw, encoding="utf-8") as stream,
        contextlib.redirect_stdout(stream),
        io.TextIOWrapper(io.BytesIO(Path(piped).read_bytes())) as sys.stdin,
    ):
        try:
            execute(words)
        finally:
            sys.argv, sys.stdin = argv, stdin
    assert written() - before or {"--skip_existing", "serve"} & {*words} or words[0].endswith("serve"), words


def written():
    """The files of this folder that hold something, with what changes when they are written."""
    states = {file: file.stat() for file in Path().rglob("*") if file.is_file()}
    return {(file, state.st_size, state.st_mtime_ns) for file, state in states.items() if state.st_size}


def curl(words):
    """Sends what curl would send, and returns the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-d", action="append", dest="data", default=[])
    parser.add_argument("-F", action="append", dest="fields", default=[])
    parser.add_argument("-H", action="append", dest="headers", default=[])
    parser.add_argument("--no-buffer", action="store_true")
    args = parser.parse_args(words)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if args.data else {}
    headers |= dict(header.split(": ") for header in args.headers)
    fields = dict(field.split("=", 1) for field in args.fields)
    files = {name: (value[1:], Path(value[1:]).read_bytes()) for name, value in fields.items() if value[0] == "@"}
    body = {"data": {name: value for name, value in fields.items() if name not in files}, "files": files}
    response = httpx.post(args.url, content="&".join(args.data) or None, **body, headers=headers, timeout=None)
    return response.raise_for_status().content
