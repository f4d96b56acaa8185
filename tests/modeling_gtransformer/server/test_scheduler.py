"""Jobs take turns at the model, share batches, and stop when nobody waits for them."""

import logging
from concurrent.futures import CancelledError
from itertools import pairwise
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException

from modeling_gtransformer import Translator
from modeling_gtransformer.server.monitoring import Monitor
from modeling_gtransformer.server.options import ServerOptions
from modeling_gtransformer.server.scheduler import Job, Scheduler


# Batches of one or two sentences.
SMALL = {"max_tokens": 12, "segment_tokens": 10}


@pytest.fixture
def make(checkpoint):
    """Makes a scheduler that has not started, and closes it after the test."""
    schedulers = []

    def make(max_seconds=100.0, **options):
        pipeline = Translator(checkpoint, **options).pipeline
        schedulers.append(Scheduler(pipeline, 20, ServerOptions(max_seconds=max_seconds), Monitor()))
        return schedulers[-1]

    yield make
    for scheduler in schedulers:
        if scheduler.is_alive:
            scheduler.close()


@pytest.fixture
def watch(monkeypatch):
    """Lists the first sentence and the number of documents of every batch that a scheduler computes."""

    def watch(scheduler, on_batch=lambda number: None):
        translate_in_steps, batches = scheduler.pipeline.translate_in_steps, []

        def watched(documents, **options):
            steps = translate_in_steps(documents, **options)
            try:
                while True:
                    number = next(steps)
                    batches.append((documents[0].sentences[0].text, len(documents)))
                    on_batch(len(batches))
                    yield number
            except StopIteration as end:
                return end.value

        monkeypatch.setattr(scheduler.pipeline, "translate_in_steps", watched)
        return batches

    return watch


def run(scheduler, *jobs):
    """Lets jobs come in together, then starts the thread; returns their results or errors."""
    for job in jobs:
        scheduler.submit(job)
    if not scheduler.is_alive:
        scheduler.start()
    results = []
    for job in jobs:
        try:
            results.append(job.result.result(60))
        except (HTTPException, CancelledError) as error:
            results.append(error)
    return results


def text_of(results):
    return [result["translation_text"] for result in results]


def test_waiting_jobs_share_batches(make, watch, checkpoint):
    """Those of equal options, up to the tokens of a batch. A stream has its own."""
    scheduler, streamed = make(), []
    batches = watch(scheduler)
    texts = ["the cat", "it is", "the cat sleeps", "the old cat is it. the cat sleeps. the cat is old", "it is old"]
    options = [{}, {}, {}, {}, {"confidence": True}]
    jobs = [Job([text], own) for text, own in zip(texts, options, strict=True)]
    *results, scored, _ = run(scheduler, *jobs, Job(["the cat"], {"on_sentence": streamed.append}))
    assert batches == [("the cat", 3), (texts[3], 1), ("it is old", 1), ("the cat", 1)]
    assert scheduler.monitor.registry.get_sample_value("gtransformer_batch_requests_sum") == 6
    assert scheduler.monitor.registry.get_sample_value("gtransformer_batch_requests_count") == 4
    translate = Translator(checkpoint)
    assert [text_of(result) for result in results] == [[translate(text)["translation_text"]] for text in texts[:4]]
    assert scored[0]["sentences"][0]["confidence"] < 0 and len(streamed) == 1


def test_a_short_job_waits_for_one_batch_of_a_long_one(make, watch, checkpoint):
    scheduler = make(**SMALL)
    long = Job([["the cat sleeps", "it is old", "the old cat"] * 4])
    late = [Job(["it is"]), Job(["the cat is old", "the cat"])]
    batches = watch(scheduler, lambda number: [*map(scheduler.submit, late)] if number == 2 else None)
    [result] = run(scheduler, long)
    scheduler.close()
    assert batches[:4] == [("the cat sleeps", 1)] * 2 + [("it is", 3), ("the cat sleeps", 1)]
    translate = Translator(checkpoint, **SMALL)
    assert result[0] == translate(long.documents[0]) and len(result[0]["segments"]) > 3
    assert text_of(late[0].result.result()) == [translate("it is")["translation_text"]]


def test_newcomers_that_take_long_to_prepare_wait_for_a_batch(make, watch, monkeypatch):
    monkeypatch.setattr("modeling_gtransformer.server.scheduler.PREPARATION_SECONDS", -1.0)
    scheduler, done = make(**SMALL), []
    late = [Job([f"it is {name}"]) for name in ("old", "it", "the cat")]
    prepare = scheduler.pipeline.prepare
    monkeypatch.setattr(
        scheduler.pipeline, "prepare", lambda *args, **own: done.append("job") or prepare(*args, **own)
    )
    watch(scheduler, lambda number: done.append("batch") or [scheduler.submit(job) for job in late if number == 1])
    run(scheduler, Job([["the cat sleeps", "it is old", "the old cat"] * 4]))
    scheduler.close()
    assert done.count("job") == 4 and "job job job" not in " ".join(done)


def test_streams_and_newcomers_take_turns(make, watch):
    """In batches, however many newcomers there are: no stream waits for more than a round."""
    scheduler, told = make(segment_sentences=1), {name: [] for name in ("the cat", "the old cat", "it is")}
    streams = [Job([[name] * 6], {"on_sentence": sentences.append}) for name, sentences in told.items()]
    newcomers = [Job(["it is old"], {"num_beams": 2}) for _ in range(12)]
    coming = iter(newcomers)
    batches = watch(scheduler, lambda _: scheduler.submit(newcomer) if (newcomer := next(coming, None)) else None)
    run(scheduler, *streams)
    scheduler.close()
    order = [name for name, _ in batches]
    for name in told:
        turns = [place for place, each in enumerate(order) if each == name]
        assert len(turns) == 6 and max(b - a for a, b in pairwise(turns)) <= 4
    assert all(newcomer.result.result() for newcomer in newcomers)
    assert order.count("it is old") < 12  # those that waited at the same time shared a turn


def test_inline_markup_of_two_documents(make, checkpoint):
    """Both need attention weights, batch by batch in turns."""
    options = {**SMALL, "splitter": "line"}
    texts = ["<p>the <b>old</b> cat.</p><p>it is <i>old</i>.</p>" * 3, "<p>the <i>cat</i> is <b>old</b>.</p>" * 3]
    scheduler = make(**options)
    implementation = scheduler.pipeline.model.config._attn_implementation
    # Documents of different options share no batches.
    results = run(scheduler, Job([texts[0]], {}, "html"), Job([texts[1]], {"confidence": True}, "html"))
    translate = Translator(checkpoint, **options)
    assert [text_of(result) for result in results] == [
        [translate(text, format="html")["translation_text"]] for text in texts
    ]
    assert scheduler.pipeline.model.config._attn_implementation == implementation


def test_a_call_has_a_turn_of_its_own_and_overtakes_no_job(make, watch):
    """Such as many views of attention beside a document."""
    scheduler, error = make(), HTTPException(400, "no luck")
    batches = watch(scheduler)

    def fail():
        raise error

    document = Job(["the cat"], {"confidence": True})
    results = run(scheduler, document, Job(call=lambda: len(batches)), Job(call=fail), Job(["it is"]))
    assert results[1:3] == [1, error] and text_of(results[3])


def test_jobs_of_a_batch_that_fails_are_tried_alone(make, monkeypatch):
    """Before those that came after them, which do not join them."""
    scheduler, late = make(), Job(["it is old"])
    translate_in_steps, batches = scheduler.pipeline.translate_in_steps, []

    def fail(documents, **options):
        texts = [document.sentences[0].text for document in documents]
        batches.append(texts)
        if len(batches) == 1:
            scheduler.submit(late)
        if "it is" in texts:
            raise RuntimeError("no luck")
        return (yield from translate_in_steps(documents, **options))

    monkeypatch.setattr(scheduler.pipeline, "translate_in_steps", fail)
    jobs = [Job(["the cat"]), Job(["it is"]), Job(["the old cat"], {"confidence": True}), Job(["<a"], {}, "docx")]
    good, bad, other, broken = run(scheduler, *jobs)
    assert text_of(good) and text_of(other) and bad.status_code == 500 and broken.status_code == 400
    assert text_of(late.result.result(60))
    assert batches == [["the cat", "it is"], ["the cat"], ["it is"], ["the old cat"], ["it is old"]]


def test_unexpected_errors_are_not_the_fault_of_the_client(make, monkeypatch, caplog):
    """Neither while a document is read nor while it is translated; the log has the place, and nothing of the text.
    Libraries in Rust raise what is no `Exception`."""
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)  # another server may have changed it
    monkeypatch.setattr(logging.getLogger("uvicorn"), "handlers", [])

    class PanicException(BaseException):
        pass

    scheduler = make()
    prepare, translate_in_steps = scheduler.pipeline.prepare, scheduler.pipeline.translate_in_steps

    def fail_to_read(document, **options):
        if "the cat" in document.document:
            raise PanicException("the cat")
        return prepare(document, **options)

    def fail_to_translate(documents, **options):
        if documents[0].sentences[0].text == "it is":
            raise ValueError("it is /home/somebody")
        return (yield from translate_in_steps(documents, **options))

    monkeypatch.setattr(scheduler.pipeline, "prepare", fail_to_read)
    monkeypatch.setattr(scheduler.pipeline, "translate_in_steps", fail_to_translate)
    jobs = [Job(["the cat"]), Job(["it is"]), Job(["it is old"], {"confidence": True}), Job(["a \ud83d"])]
    cat, it, old, half = run(scheduler, *jobs)
    assert (
        (cat.status_code, it.status_code, half.status_code) == (500, 500, 400) and text_of(old) and scheduler.is_alive
    )
    assert not any(word in error.detail for error in (cat, it) for word in ("the cat", "somebody"))
    assert "PanicException in a request" in caplog.text and "ValueError in a request" in caplog.text
    assert {record.name for record in caplog.records} == {"uvicorn.error"}


def test_seconds_of_its_own_batches_count(make, monkeypatch):
    """Those of other jobs do not."""
    seconds = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("modeling_gtransformer.server.scheduler.time", clock)  # every batch takes a second
    scheduler = make(max_seconds=4, **SMALL)
    sentences = ["the cat sleeps", "it is old", "the old cat"]
    [late, *others] = run(scheduler, Job([sentences * 3]), *(Job([sentences], {"num_beams": n}) for n in (2, 3)))
    assert late.status_code == 504 and "took more than 4 seconds and was stopped: send less text" in late.detail
    assert all(text_of(other) for other in others)


def test_a_cancelled_job_ends_with_its_batch(make, watch):
    scheduler, job = make(**SMALL), Job([["the cat sleeps", "it is old"] * 20])
    batches = watch(scheduler, lambda number: job.result.cancel() if number == 3 else None)
    waiting = Job(["it is"], {"num_beams": 2})
    waiting.result.cancel()
    errors = run(scheduler, job, waiting)
    [other] = run(scheduler, Job(["the cat"]))
    assert [type(error) for error in errors] == [CancelledError] * 2
    assert [name for name, _ in batches] == ["the cat sleeps"] * 3 + ["the cat"] and text_of(other)


def test_closing_finishes_what_has_come_in(make):
    scheduler, jobs = make(), [Job(["the cat"]), Job(["it is"], {"confidence": True})]
    for job in jobs:
        scheduler.submit(job)
    scheduler.start()
    scheduler.close()
    assert all(job.result.done() for job in jobs) and not scheduler.is_alive
