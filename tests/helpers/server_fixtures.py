"""A server in this process, and a model that waits until a test lets it go on."""

import contextlib
from threading import Event

import pytest

from modeling_gtransformer import Translator


@pytest.fixture
def serve():
    """Gives a client of a server of a checkpoint, which is shut down after the test."""
    from fastapi.testclient import TestClient

    from modeling_gtransformer.server.application import make_application
    from modeling_gtransformer.server.options import ServerOptions

    with contextlib.ExitStack() as stack:

        def start(model, glossary=None, languages=None, **options):
            translator = Translator(str(model), splitter="sentencex", glossary=glossary, **(languages or {}))
            return stack.enter_context(TestClient(make_application(translator, ServerOptions(**options))))

        yield start


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
