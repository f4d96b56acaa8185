"""The command `gtransformer-serve`: a real server on this machine, used by a client that others wrote."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.error import HTTPError, URLError

import pytest
import torch
import uvicorn
from fastapi.testclient import TestClient
from repository import ROOT

from modeling_gtransformer.cli.main import main
from modeling_gtransformer.runtime import translator
from modeling_gtransformer.server import serve as module
from modeling_gtransformer.server.options import ServerOptions


FIELDS = {"q": "the cat", "source": "en", "target": "de"}


def connect(address):
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))


def post(url, **fields):
    headers = {"Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(fields).encode(), headers))


def test_a_client_of_libretranslate(listen, sentence_level_checkpoint, tmp_path):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    (tmp_path / "keys.txt").write_text("one\n")
    _, address = listen(sentence_level_checkpoint("m2m_100-nllb"), api_keys=str(tmp_path / "keys.txt"))
    client = libretranslatepy.LibreTranslateAPI(address, "one")
    assert client.translate("the cat sleeps\nit is old", "en", "de") == "die katze schläft\nsie ist alt"
    german = next(language for language in client.languages() if language["code"] == "de")
    assert german["name"] == "German" and {"en", "fr", "ro"} <= {*german["targets"]}
    with pytest.raises(HTTPError) as error:
        client.translate("the cat", "en", "xx")
    assert error.value.code == 400 and "Cannot translate into 'xx'" in json.load(error.value)["error"]
    with pytest.raises(HTTPError) as error:
        libretranslatepy.LibreTranslateAPI(address).translate("the cat", "en", "de")
    assert error.value.code == 403
    pytest.importorskip("py3langid")
    detected = client.detect("Der Hund schläft heute in seinem kleinen Haus.")
    assert detected[0]["language"] == "de" and detected[0]["confidence"] > 50


@pytest.mark.parametrize("length, sent", [(9_000_000_000, b""), (11_000_000, b"x" * 11_000_000)])
def test_a_large_body_is_refused_while_it_is_sent(listen, checkpoint, length, sent):
    """The connection ends after the answer, and not before a client that is still sending can read it."""
    _, address = listen(checkpoint, read_seconds=1)
    with connect(address) as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (length, sent))
        answer = connection.makefile("rb").read()  # to the end: the server closes it
    assert answer.startswith(b"HTTP/1.1 413 ") and answer.endswith(b'The maximum is 10,000,000 bytes."}')


@pytest.mark.parametrize("route", ["/translate", "/documents/stream"])
def test_a_client_that_closes_its_connection(listen, checkpoint, gate, route):
    """Its job is cancelled, and the model is free."""
    server, address = listen(checkpoint)
    service = server.config.app.state.service
    waits = gate(service.scheduler.pipeline)
    body = json.dumps({**FIELDS, "document": "the cat"})
    with connect(address) as connection:
        connection.sendall(f"POST {route} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        assert waits.arrived.wait(60)
    for _ in range(100):  # the server learns of it in its own time
        if service.under_way:
            urllib.request.urlopen(f"{address}/health")
    assert not service.under_way
    waits.open.set()
    assert post(f"{address}/translate", **FIELDS).status == 200
    metrics = service.monitor.text().decode()
    assert f'gtransformer_requests_total{{route="{route}",status="499"}} 1.0' in metrics
    assert "gtransformer_batch_requests_count 1.0" in metrics


def test_a_process_that_is_told_to_end_in_the_middle_of_a_document(checkpoint):
    """It sends the rest of the stream, and refuses new requests."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = str(sock.getsockname()[1])
    command = f"-m modeling_gtransformer.cli.main serve --no-page --port {port} --model".split()
    process = subprocess.Popen([sys.executable, *command, checkpoint], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    document = ["the cat sleeps", "it is old"] * 20
    while True:
        assert process.poll() is None
        try:
            stream = post(f"http://127.0.0.1:{port}/documents/stream", document=document)
            break
        except URLError:  # it is still loading
            time.sleep(0.1)
    assert stream.readline() == b"event: sentence\n"
    process.send_signal(signal.SIGTERM)
    rest = stream.read().decode()
    assert rest.count("event: sentence\n") == len(document) - 1 and rest.count("event: document\n") == 1
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGTERM and "Traceback" not in errors


def test_an_open_page_does_not_keep_a_server_from_ending(listen, checkpoint):
    pytest.importorskip("gradio")
    server, address = listen(checkpoint, page=True)
    with urllib.request.urlopen(f"{address}/gradio_api/heartbeat/reader") as heartbeat:
        assert heartbeat.readline() == b"data: ALIVE\n"
        server.should_exit = True
        heartbeat.read()  # to its end


@pytest.mark.parametrize(
    "option, has_gradio, says", [("--page", True, False), ("--page", False, True), ("--no-page", False, False)]
)
def test_a_page_that_is_switched_off_or_lacks_gradio(checkpoint, monkeypatch, capsys, option, has_gradio, says):
    servers = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server: servers.append(server))
    if not has_gradio:
        monkeypatch.setitem(sys.modules, "gradio", None)
    assert main(["serve", "--model", checkpoint, option]) == 0
    assert TestClient(servers[0].config.app).get("/").status_code == (200 if has_gradio else 404)
    assert ("The page at / needs gradio: pip install 'gtransformer-hf[page]'." in capsys.readouterr().err) == says


def test_a_request_leaves_no_line(listen, checkpoint, capfd):
    _, address = listen(checkpoint)
    capfd.readouterr()
    post(f"{address}/translate", **FIELDS).read()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--max_bytes", "0"], "--max_bytes must be at least 1, not 0"),
        (["--max_seconds", "nan"], "--max_seconds must be at least 0, not nan"),
        (["--port", "65536"], "--port must be between 1 and 65535, not 65536"),
        (["--lists", "both"], "'both' is not one of"),
    ],
)
def test_wrong_usage(arguments, words, capsys):
    assert main(["serve", "--model", "m", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_server_keeps_kernels_for_few_shapes_unless_told_otherwise(tmp_path, monkeypatch, capsys):
    environment = {"LRU_CACHE_CAPACITY": "1000"}
    monkeypatch.setattr(module.os, "environ", environment)
    assert main(["serve", "--model", str(tmp_path)]) == 2
    assert environment == {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "1000"}
    assert "has no config.json" in capsys.readouterr().err


def test_a_server_without_its_packages(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "environ", {**os.environ})
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "--model", str(tmp_path)]) == 2
    assert "A server needs uvicorn: pip install 'gtransformer-hf[files,serve]'" in capsys.readouterr().err


def test_only_this_machine_reaches_the_server_by_default():
    assert ServerOptions().host == "127.0.0.1"


def test_a_model_is_loaded_with_one_thread_for_the_sake_of_those_that_translate(monkeypatch):
    threads, load, used = torch.get_num_threads(), translator.load_checkpoint, []
    monkeypatch.setattr(
        translator, "load_checkpoint", lambda *args: used.append(torch.get_num_threads()) or load(*args)
    )
    torch.set_num_threads(2)
    try:
        module.make_server(ServerOptions(page=False))
        assert (used, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(threads)
