"""Turns at the model: batches of several jobs alternate, and a job can be stopped at any step."""

from threading import Event, Thread

import pytest


class Clock:
    """Seconds that pass only when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_turns(space, clock):
    return lambda seconds=100.0: space("turns").Turns(seconds, clock)


def wait_until_waiting(turns, number):
    """Until so many jobs wait for the model."""
    while len(turns._waiting) < number:
        pass


def run(*jobs):
    threads = [Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    return threads


def test_a_short_job_waits_for_a_batch_and_not_for_a_document(make_turns):
    turns, order, begun = make_turns(), [], Event()

    def long():
        with turns.job("long"):
            begun.set()
            wait_until_waiting(turns, 1)
            for _ in range(3):
                turns.between_batches()
                order.append("long")

    def short():
        begun.wait()
        with turns.job("short"):
            order.append("short")

    for thread in run(long, short):
        thread.join(60)
    # It was asked before the first batch of the long one, which had the model.
    assert order == ["short", "long", "long", "long"]


def test_time_counts_while_a_job_computes_and_not_while_it_waits(make_turns, space, clock):
    turns = make_turns(seconds=10)
    with turns.job("a"):
        clock.now += 6
        turns.check()
        begun = Event()

        def other():
            with turns.job("b"):
                begun.set()
                clock.now += 100

        [thread] = run(other)
        wait_until_waiting(turns, 1)
        turns.between_batches()
        thread.join(60)
        assert begun.is_set()
        turns.check()  # 6 seconds of its own
        clock.now += 5
        with pytest.raises(space("turns").JobStopped, match="took more than 10 seconds and was stopped"):
            turns.check()
    turns.check()  # without a job nothing is limited


def test_cancelling_stops_the_jobs_of_a_session_only(make_turns, space):
    turns, stopped = make_turns(), []

    def waiting():
        try:
            with turns.job("mine"):
                pass
        except space("turns").JobStopped as error:
            stopped.append(str(error))

    with turns.job("yours"):
        [thread] = run(waiting)
        wait_until_waiting(turns, 1)
        turns.cancel("mine")
        thread.join(60)
        assert stopped == ["The translation was cancelled."]
        turns.check()
        turns.cancel("yours")
        with pytest.raises(space("turns").JobStopped):
            turns.check()
    with turns.job("next"):  # the model is free again
        turns.check()


def test_jobs_come_and_go_under_the_lock(make_turns):
    """As `cancel` looks through them, which another thread must not disturb."""
    turns, held = make_turns(), []

    class Watched(set):
        def add(self, job):
            held.append(turns._condition._is_owned())
            super().add(job)

        def discard(self, job):
            held.append(turns._condition._is_owned())
            super().discard(job)

    turns._jobs = Watched()
    with turns.job("mine"):
        pass
    assert held == [True, True]


@pytest.mark.parametrize("arguments", [{}, {"parallel_sentences": True}, {"num_beams": 2}])
def test_the_model_stops_at_a_step_of_the_decoder(make_turns, space, processor, tiny_model, arguments):
    model = tiny_model(vocab_size=len(processor.tokenizer))
    processor.configure(model)
    turns, steps = make_turns(), []
    turns.watch(model)
    model.model.decoder.register_forward_pre_hook(lambda *_: steps.append(1))
    inputs = processor(["the cat", "it is old"], return_tensors="pt")
    with turns.job("a"):
        model.generate(**inputs, **arguments)
        assert len(steps) > 1
        del steps[:]
        turns.cancel("a")
        with pytest.raises(space("turns").JobStopped):
            model.generate(**inputs, **arguments)
    assert len(steps) == 0
