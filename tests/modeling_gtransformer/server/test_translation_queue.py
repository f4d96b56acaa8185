"""Requests share batches, stop when nobody waits for them, and let shorter ones pass."""

import asyncio
import logging
from types import SimpleNamespace

import pytest
from tiny import watch_implementation

from modeling_gtransformer import Translator
from modeling_gtransformer.files.glossaries import Concept, Glossary
from modeling_gtransformer.server.api_error import ApiError
from modeling_gtransformer.server.job import Job, JobSettings
from modeling_gtransformer.server.monitoring import Monitor
from modeling_gtransformer.server.server_settings import Limits
from modeling_gtransformer.server.translation_queue import TranslationQueue


PLAIN = JobSettings()


@pytest.fixture
def make_queue(checkpoint):
    """Makes a queue that has not started yet, and closes it."""
    queues = []

    def make(limits=None, model=checkpoint, **options):
        queues.append(TranslationQueue(Translator(model, **options), limits or Limits(), Monitor()))
        return queues[-1]

    yield make
    for queue in queues:
        if queue.is_alive:
            queue.close()


def text_of(results):
    return [result["translation_text"] for result in results]


async def results_of(queue, jobs):
    """Lets jobs come in together, then starts the thread."""
    waiting = [asyncio.ensure_future(queue.result_of(job)) for job in jobs]
    await asyncio.sleep(0)
    if not queue.is_alive:
        queue.start()
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_what_waits_shares_a_batch(make_queue, gate, checkpoint):
    """In the order in which it came, of the same settings, up to the tokens of a batch."""
    queue = make_queue(max_tokens=20)
    seen = gate(queue.translate)
    seen.open.set()
    texts = ["the cat", "it is", "the cat sleeps", "the old cat is it. the cat sleeps. the cat is old"]
    jobs = [Job([text], PLAIN) for text in texts] + [Job(["it is old"], JobSettings(confidence=True))]
    results = asyncio.run(results_of(queue, jobs))
    assert seen.batches == [[["the cat"], ["it is"], ["the cat sleeps"]], [[texts[3]]], [["it is old"]]]
    translate = Translator(checkpoint)
    assert [text_of(result) for result in results[:4]] == [[translate(text)["translation_text"]] for text in texts]
    assert results[4][0]["sentences"][0]["confidence"] < 0
    assert b"gtransformer_batch_requests_sum 5.0" in queue.monitor.text()


def test_a_document_that_fails_takes_no_other_with_it(make_queue, monkeypatch):
    queue = make_queue()
    translate_prepared, batches = queue.translate.translate_prepared, []

    def fail(documents, **arguments):
        batches.append(len(documents))
        if any(document["sentences"] == ["it is"] for document in documents):
            raise RuntimeError("no luck")
        return translate_prepared(documents, **arguments)

    monkeypatch.setattr(queue.translate, "translate_prepared", fail)
    jobs = [Job([text], PLAIN, kind) for text, kind in [("the cat", "text"), ("it is", "text"), ("<a", "docx")]]
    good, bad, broken = asyncio.run(results_of(queue, jobs))
    assert good[0]["sentences"] and bad.status == 500 and batches == [2, 1, 1]
    assert isinstance(broken, ApiError) and broken.status == 400


def test_a_job_that_is_tried_again_has_its_warnings_once(make_queue, monkeypatch):
    queue = make_queue()
    translate_prepared, logger = queue.translate.translate_prepared, logging.getLogger("modeling_gtransformer.any")

    def warn(documents, **arguments):
        logger.warning("of all")
        for document in documents:
            logger.warning(f"{document['name']}: of one")
        if len(documents) > 1:
            raise RuntimeError("no luck")
        return translate_prepared(documents, **arguments)

    monkeypatch.setattr(queue.translate, "translate_prepared", warn)
    jobs = [Job([text], PLAIN) for text in ("the cat", "it is")]
    asyncio.run(results_of(queue, jobs))
    assert [job.warnings for job in jobs] == [["of all", "Document 1: of one"]] * 2


def test_what_was_not_foreseen_is_not_the_fault_of_the_client(make_queue, monkeypatch, caplog):
    """Neither while a document is read nor while it is translated; the log says where, and nothing of the text."""
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)  # another server may have changed it
    monkeypatch.setattr(logging.getLogger("uvicorn"), "handlers", [])
    queue = make_queue()
    prepare = queue.translate.prepare

    def fail_to_read(document, **arguments):
        if document.document == "the cat":
            raise KeyError("the cat")
        return prepare(document, **arguments)

    def fail_to_translate(*_, **__):
        raise ValueError("it is /home/somebody")

    monkeypatch.setattr(queue.translate, "prepare", fail_to_read)
    monkeypatch.setattr(queue.translate, "translate_prepared", fail_to_translate)
    errors = asyncio.run(results_of(queue, [Job(["the cat"], PLAIN), Job(["it is"], PLAIN)]))
    assert [error.status for error in errors] == [500, 500]
    assert not any(word in error.message for error in errors for word in ("the cat", "somebody"))
    assert "KeyError in a request" in caplog.text and "ValueError in a request" in caplog.text
    assert {record.name for record in caplog.records} == {"uvicorn.error"}


def test_a_panic_takes_nobody_with_it(make_queue, monkeypatch):
    """Libraries in Rust raise what is no `Exception`, wherever they break off."""

    class PanicException(BaseException):
        pass

    def panic_at(place, words):
        original = getattr(*place)

        def panic(given, *args, **kwargs):
            if words in str(given):
                raise PanicException
            return original(given, *args, **kwargs)

        monkeypatch.setattr(*place, panic)

    queue = make_queue()
    panic_at((queue.translate, "prepare"), "the cat")
    panic_at((queue.translate, "translate_prepared"), "it is")
    jobs = [Job([text], PLAIN) for text in ("the cat", "it is", "the old cat", "a \ud83d")]
    cat, it, old, half = asyncio.run(results_of(queue, jobs))
    assert (cat.status, it.status, half.status) == (500, 500, 400) and text_of(old) and queue.is_alive


def test_a_glossary_is_for_its_languages(make_queue, sentence_level_checkpoint):
    """A request in others has the terms of those, or none."""
    concept = Concept("", {"en": [("cat", "")], "de": [("katze", "")], "fr": [("chien", "")]})
    glossary = Glossary("terms", [concept], names_languages=True)
    model, languages = sentence_level_checkpoint("m2m_100-nllb"), {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    queue = make_queue(model=model, **languages, glossary=glossary)
    targets = ("deu_Latn", "fra_Latn", "ron_Latn")
    jobs = [Job(["the cat"], JobSettings("eng_Latn", target)) for target in targets]
    german, french, romanian = (text_of(result)[0] for result in asyncio.run(results_of(queue, jobs)))
    assert "katze" in german and "chien" in french
    assert romanian == Translator(model, **languages)("the cat", tgt_lang="ron_Latn")["translation_text"]


def test_bounds(make_queue):
    queue = make_queue(Limits(max_waiting=1, max_characters=10))

    async def run():
        first = asyncio.ensure_future(queue.result_of(Job(["the cat sleeps."], PLAIN)))
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="busy") as busy:
            await queue.result_of(Job(["it is"], PLAIN))
        queue.start()
        with pytest.raises(ApiError, match="15 characters: at most 10") as large:
            await first
        return busy.value, large.value

    busy, large = asyncio.run(run())
    assert busy.status == 503 and int(busy.headers["Retry-After"]) >= 1 and large.status == 413
    assert queue.under_way == 0


def test_a_job_that_takes_too_long(make_queue):
    """It is dropped, as nobody waits for it any more."""
    queue, job = make_queue(Limits(max_seconds=0)), Job(["the cat"], PLAIN)
    with pytest.raises(ApiError, match="not done after 0 seconds") as error:
        asyncio.run(queue.result_of(job))
    assert error.value.status == 504 and job.result.cancelled() and queue.under_way == 0


def test_a_cancelled_job_stops_in_the_middle(make_queue):
    """At a step of the decoder; others go on."""
    queue = make_queue()
    steps, job = [], Job(["the cat sleeps. " * 20], PLAIN)

    def cancel(*_):
        steps.append(1)
        if len(steps) == 3:
            job.result.cancel()

    queue.translate.model.model.decoder.register_forward_pre_hook(cancel, prepend=True)
    cancelled, _ = asyncio.run(results_of(queue, [job])), len(steps)
    assert isinstance(cancelled[0], asyncio.CancelledError) and len(steps) == 3
    [other] = asyncio.run(results_of(queue, [Job(["the cat"], PLAIN)]))
    assert other[0]["translation_text"]


def test_a_job_that_is_cancelled_before_its_turn(make_queue, gate):
    queue = make_queue()
    seen = gate(queue.translate)
    seen.open.set()
    jobs = [Job(["the cat"], PLAIN), Job(["it is"], PLAIN)]
    jobs[0].result.cancel()
    asyncio.run(results_of(queue, jobs))
    assert seen.batches == [[["it is"]]]


def test_short_jobs_pass_a_long_one(make_queue, checkpoint):
    """Between two of its batches, once, with their own results."""
    queue = make_queue(max_tokens=12, segment_tokens=10)
    long = Job([["the cat sleeps", "it is old", "the old cat"] * 4], PLAIN)
    late = [Job(["it is"], PLAIN), Job(["the cat is old", "the cat"], PLAIN, number=10**6)]
    order = []
    for name, job in (("long", long), ("short", late[0]), ("second", late[1])):
        job.result.add_done_callback(lambda _, name=name: order.append(name))
    batches = []

    def come_in(*_):
        batches.append(1)
        if len(batches) == 2:
            for job in late:
                queue._incoming.put(job)

    queue.translate.model.model.encoder.register_forward_pre_hook(come_in, prepend=True)
    [result] = asyncio.run(results_of(queue, [long]))
    queue.close()
    translate = Translator(checkpoint, max_tokens=12, segment_tokens=10)
    assert result[0] == translate(long.documents[0]) and len(result[0]["segments"]) > 3
    assert order == ["short", "second", "long"]
    assert text_of(late[0].result.result()) == [translate("it is")["translation_text"]]


def test_a_job_passes_while_another_aligns_its_words(make_queue, checkpoint):
    """Both have inline markup. Neither changes how the model attends."""
    options = {"max_tokens": 12, "segment_tokens": 10, "splitter": "line"}
    queue = make_queue(**options)
    long = Job(["<p>the <b>old</b> cat.</p><p>it is <i>old</i>.</p>" * 3], PLAIN, "html")
    short, order = Job(["<p>the <i>cat</i>.</p>"], PLAIN, "html"), []

    def come_in(module, args, kwargs):
        if kwargs.get("output_attentions"):
            order.append("alignment")
            if len(order) == 1:
                queue._incoming.put(short)

    model = queue.translate.model
    model.model.encoder.register_forward_pre_hook(come_in, prepend=True, with_kwargs=True)
    implementation, seen = model.config._attn_implementation, watch_implementation(model)
    for name, job in (("long", long), ("short", short)):
        job.result.add_done_callback(lambda _, name=name: order.append(name))
    [result] = asyncio.run(results_of(queue, [long]))
    queue.close()
    assert order[:3] == ["alignment", "alignment", "short"] and order[-1] == "long"
    translate = Translator(checkpoint, **options)
    for job, own in ((long, result), (short, short.result.result())):
        assert own == [translate(job.documents[0], format="html")]
    assert seen == {implementation} and model.config._attn_implementation == implementation


def test_short_jobs_pass_a_stream(make_queue):
    """Its segments are translated one by one, however few tokens it has."""
    queue = make_queue(segment_sentences=1)
    short, order, told = Job(["it is"], PLAIN), [], []

    def on_sentence(sentence):
        told.append(sentence)
        if len(told) == 1:
            queue._incoming.put(short)

    stream = Job([["the cat sleeps", "it is old"]], PLAIN, on_sentence=on_sentence)
    for name, job in (("stream", stream), ("short", short)):
        job.result.add_done_callback(lambda _, name=name: order.append(name))
    asyncio.run(results_of(queue, [stream]))
    assert order == ["short", "stream"]


def test_closing_finishes_what_has_come_in(make_queue):
    queue = make_queue()
    jobs = [Job(["the cat"], PLAIN), Job(["it is"], JobSettings(confidence=True))]
    for job in jobs:
        queue._incoming.put(job)
    queue.start()
    queue.close()
    assert all(job.result.done() for job in jobs) and not queue.is_alive


def test_sentences_of_a_stream(make_queue, checkpoint):
    """Beside other jobs, which share no batch with it."""
    told = []
    stream = Job([["the cat", " ", "it is"]], PLAIN, on_sentence=told.append)
    results = asyncio.run(results_of(make_queue(), [stream, Job(["the cat"], PLAIN)]))
    pairs = [pair for pair in results[0][0]["sentences"] if pair["source_text"].strip()]
    assert told == pairs and text_of(results[1]) == [Translator(checkpoint)("the cat")["translation_text"]]


def test_sentences_of_a_stream_of_several_documents(make_queue):
    """Each of them counts its own sentences."""
    texts, told = ["the cat", "it is", "the old cat"], []
    files = "".join(
        f'<file original="{text}" source-language="en" target-language="de" datatype="plaintext"><body>'
        f'<trans-unit id="1"><source>{text}</source></trans-unit></body></file>'
        for text in texts
    )
    xliff = f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{files}</xliff>'
    [[result]] = asyncio.run(results_of(make_queue(), [Job([xliff], PLAIN, "xliff", told.append)]))
    assert told == result["sentences"] and [each["source_text"] for each in told] == texts


def test_nothing_waits_when_all_is_done(make_queue):
    queue = make_queue()
    asyncio.run(results_of(queue, [Job(["the cat"], PLAIN), Job(["it is"], PLAIN)]))
    assert b"gtransformer_waiting_requests 0.0" in queue.monitor.text()


def test_who_is_refused_may_come_again_after_a_batch(make_queue, monkeypatch):
    """Which takes as long as the last one did, in whole seconds."""
    queue, seconds = make_queue(Limits(max_waiting=1)), iter([100.0, 107.2])
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("modeling_gtransformer.server.translation_queue.time", clock)
    queue._incoming.put(Job(["the cat"], PLAIN))
    queue.start()
    queue.close()
    queue.under_way = 1
    with pytest.raises(ApiError) as busy:
        asyncio.run(queue.result_of(Job(["it is"], PLAIN)))
    assert busy.value.headers == {"Retry-After": "8"}


def test_a_batch_that_fails_does_not_lose_its_turn(make_queue, monkeypatch):
    """Its jobs are tried alone before those that came after them."""
    queue = make_queue()
    translate_prepared, order = queue.translate.translate_prepared, []

    def fail(documents, **arguments):
        if len(documents) > 1:
            raise RuntimeError("no luck")
        order.append(documents[0]["sentences"][0])
        return translate_prepared(documents, **arguments)

    monkeypatch.setattr(queue.translate, "translate_prepared", fail)
    settings = [PLAIN, PLAIN, JobSettings(confidence=True)]
    texts = ["the cat", "it is", "the old cat"]
    asyncio.run(results_of(queue, [Job([text], own) for text, own in zip(texts, settings, strict=True)]))
    assert order == texts
