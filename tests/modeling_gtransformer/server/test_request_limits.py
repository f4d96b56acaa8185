"""Requests are limited: by keys, by client, in size and time; those of clients that are gone stop."""

import asyncio
import hmac
import json

import pytest
from starlette.exceptions import HTTPException

from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.server.options import ServerOptions
from modeling_gtransformer.server.request_limits import ApiKeys, BoundedRequests, ClientLimit


SCOPE = {"type": "http", "method": "POST", "headers": []}
GONE = {"type": "http.disconnect"}


class Client:
    """Sends messages, and then nothing more; keeps what it gets."""

    def __init__(self, *messages, stays=True):
        self.messages, self.stays, self.taken, self.answers, self.unread = [*messages], stays, 0, [], []

    async def receive(self):
        if self.taken == len(self.messages):
            if not self.stays:
                return GONE
            await asyncio.Event().wait()
        self.taken += 1
        return self.messages[self.taken - 1]

    async def send(self, message):
        self.answers.append(message)
        self.unread.append(len(self.messages) - self.taken)

    @property
    def refusal(self):
        start, body, end = self.answers
        assert body["more_body"] and end == {"type": "http.response.body"}  # the connection stays open until then
        headers = dict(start["headers"])
        assert headers[b"connection"] == b"close" and headers[b"content-type"] == b"application/json"
        return start["status"], json.loads(body["body"])["error"]


class Application:
    """Reads its request, and then works until it is cancelled, or not at all."""

    def __init__(self, works=False):
        self.works, self.got = works, []

    async def __call__(self, scope, receive, send):
        self.got.append((await receive())["body"])
        if self.works:
            await receive()  # the end of the connection


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def request(client, app, scope=SCOPE, **limits):
    bounded = BoundedRequests(app, ServerOptions(**limits))(scope, client.receive, client.send)
    asyncio.run(asyncio.wait_for(bounded, 60))


@pytest.mark.parametrize(
    "scope",
    [
        {},
        # As libretranslatepy sends its key.
        {"method": "GET", "headers": [(b"content-length", b"7")]},
        {"method": "GET", "headers": [(b"transfer-encoding", b"chunked")]},
    ],
)
def test_the_application_gets_the_whole_body(scope):
    app = Application()
    request(Client(part(b"the ", True), part(b"cat")), app, SCOPE | scope, max_bytes=7)
    assert app.got == [b"the cat"]


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"0")]])
def test_a_get_without_a_body_is_not_limited(headers):
    """Load balancers ask for the health of a busy server."""
    app, client = Application(), Client(part(b""))
    bounded = BoundedRequests(app, ServerOptions(max_waiting=1))
    bounded.open = 2
    asyncio.run(bounded({**SCOPE, "method": "GET", "headers": headers}, client.receive, client.send))
    assert app.got == [b""]


@pytest.mark.parametrize("announced, unread", [(b"12", 3), (b"1", 1), (b"-1", 1), (b"x", 1)])
def test_a_large_body_is_refused_before_it_is_read(announced, unread):
    """By its announced size or by what has arrived. The client gets the answer while it sends the rest, which is
    dropped."""
    app, client = Application(), Client(part(b"cat ", True), part(b"cat ", True), part(b"cat "))
    request(client, app, {**SCOPE, "headers": [(b"content-length", announced)]}, max_bytes=7)
    assert client.refusal == (413, "The request is too large. The maximum is 7 bytes.")
    assert client.unread == [unread, unread, 0] and app.got == []


def test_the_refusal_of_a_whole_body_waits_for_nothing():
    client = Client(part(b"the cat sleeps"))
    request(client, Application(), max_bytes=7, read_seconds=3600.0)
    assert client.refusal == (413, "The request is too large. The maximum is 7 bytes.")


def test_a_slow_client():
    app, client = Application(), Client(part(b"the ", True))
    request(client, app, read_seconds=0.01)
    assert client.refusal == (408, "The request did not arrive within 0.01 seconds.") and app.got == []


def in_turn(bounded, *requests):
    """Starts requests of addresses one by one, each when those before wait or are answered; then ends them all."""

    async def run():
        tasks = []
        for address, client in requests:
            scope = {**SCOPE, "client": (address, 1)}
            tasks.append(asyncio.ensure_future(bounded(scope, client.receive, client.send)))
            for _ in range(50):
                await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_bodies_that_are_read_are_bounded_in_number():
    """Those that are as slow as they can, too; later there is room again."""
    app, refused = Application(), Client(part(b"the cat"))
    bounded = BoundedRequests(app, ServerOptions(max_waiting=1))
    in_turn(bounded, ("a", Client()), ("b", Client()), ("c", refused))
    in_turn(bounded, ("d", Client(part(b"it is"))))
    assert refused.refusal == (503, "The server is busy: try again later.")
    assert app.got == [b"it is"]


def test_refused_requests_take_no_place():
    """Also while the rest of their bodies arrives."""
    app = Application()
    bounded = BoundedRequests(app, ServerOptions(max_waiting=2, max_per_client=1, read_seconds=3600.0))
    slow = [("10.0.0.1", Client(part(b"the ", True))) for _ in range(9)]
    in_turn(bounded, *slow, ("10.0.0.2", Client(part(b"it is"))))
    assert app.got == [b"it is"]


def test_a_client_that_does_not_read_its_answer():
    class Unread(Client):
        async def send(self, message):
            await asyncio.Event().wait()

    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    request(Unread(part(b"the cat")), answer, read_seconds=0.01)


def test_bodies_that_one_address_sends_are_bounded():
    """It does not keep others out. Requests that are being answered do not count: many may share an address."""
    app, refused = Application(works=True), Client(part(b"the cat"))
    answered = [Client(part(body)) for body in (b"a", b"b", b"c")]
    here = [("10.0.0.1", client) for client in (*answered, Client(), Client(), refused)]
    bounded = BoundedRequests(app, ServerOptions(max_per_client=1))
    in_turn(bounded, *here, ("10.0.0.2", Client(part(b"it is"))))
    assert refused.refusal == (429, "You have 2 concurrent requests: wait for one to finish.")
    assert app.got == [b"a", b"b", b"c", b"it is"]


def test_a_client_that_goes_while_it_sends():
    app, client = Application(), Client(part(b"the ", True), stays=False)
    request(client, app)
    assert app.got == [] and client.answers == []


@pytest.fixture
def keys_file(tmp_path):
    (tmp_path / "keys.txt").write_text("one\n# of us\n\n  twö\n", encoding="utf-8-sig")
    return str(tmp_path / "keys.txt")


def test_keys(keys_file):
    keys = ApiKeys(keys_file)
    for key in ("one", "twö"):
        keys.check(key)
    for key in (None, "", ["one"], "on", "onee", "# of us", "\ud800"):
        with pytest.raises(HTTPException) as error:
            keys.check(key)
        assert error.value.status_code == 403


def test_every_key_is_compared_in_constant_time(keys_file, monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair))
    ApiKeys(keys_file).check("one")
    assert len(compared) == 2 and all(len(one) == len(other) == 32 for one, other in compared)


def test_a_file_without_keys(tmp_path):
    (tmp_path / "keys.txt").write_text("# none\n")
    with pytest.raises(UsageError, match="has no API keys: write one on each line"):
        ApiKeys(str(tmp_path / "keys.txt"))
    with pytest.raises(UsageError, match=r"cannot be read: .*No such file"):
        ApiKeys(str(tmp_path / "none.txt"))


def test_nothing_is_kept_of_clients_that_are_done():
    limit = ClientLimit(1)
    with limit.request("a"), limit.request("b"):
        with pytest.raises(HTTPException) as error, limit.request("a"):
            pass
        assert error.value.status_code == 429 and error.value.headers == {"Retry-After": "1"}
    with pytest.raises(KeyError), limit.request("a"):
        raise KeyError
    assert not limit.under_way
