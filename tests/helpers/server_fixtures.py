"""A server in this process, its page, and a model that waits until a test lets it go on."""

import contextlib
import socket
from threading import Event, Thread
from xml.etree import ElementTree

import pytest

from modeling_gtransformer import Translator


@pytest.fixture
def serve():
    """Gives a client of a server of a checkpoint without a page, which is shut down after the test."""
    from fastapi.testclient import TestClient

    from modeling_gtransformer.server.application import make_application
    from modeling_gtransformer.server.options import ServerOptions

    with contextlib.ExitStack() as stack:

        def start(model, glossary=None, languages=None, **options):
            translator = Translator(str(model), splitter="sentencex", glossary=glossary, **(languages or {}))
            return stack.enter_context(TestClient(make_application(translator, ServerOptions(page=False, **options))))

        yield start


@pytest.fixture
def listen():
    """Runs the server of a command line in a thread, and gives it with its address."""
    from modeling_gtransformer.server.options import ServerOptions
    from modeling_gtransformer.server.serve import make_server

    running = []

    def start(model, page=False, **options):
        server = make_server(ServerOptions(model=model, page=page, **options))
        sock = socket.create_server(("127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        running.append((server, thread))
        return server, f"http://127.0.0.1:{sock.getsockname()[1]}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join()


def elements(html, name):
    """Those of a class, of HTML that is well-formed."""
    return [e for e in ElementTree.fromstring(f"<div>{html}</div>").iter() if e.get("class") == name]


def text_of(element):
    return "".join(element.itertext())


class Gate:
    """Lets a pipeline translate documents whenever it is open, and lists those that it translates together."""

    def __init__(self, pipeline):
        self.arrived, self.open, self.batches = Event(), Event(), []
        translate_in_steps = pipeline.translate_in_steps

        def wait(documents, **options):
            self.batches.append([[each.text for each in document.sentences] for document in documents])
            self.arrived.set()
            assert self.open.wait(60)
            return (yield from translate_in_steps(documents, **options))

        pipeline.translate_in_steps = wait


@pytest.fixture
def gate():
    """Makes a gate in front of the model of a pipeline, which opens after the test at the latest."""
    gates = []

    def make(translate):
        gates.append(Gate(translate))
        return gates[-1]

    yield make
    for each in gates:
        each.open.set()
