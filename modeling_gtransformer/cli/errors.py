"""Errors of a command, each in a sentence and with an exit status."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub.errors import StrictDataclassError

from ..usage_error import UsageError, in_a_sentence


DONE, FAILED, REFUSED, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


class Terminated(BaseException):
    """Somebody ends the process by SIGTERM."""


def run(program: str, main: Callable[[], Any]) -> int:
    """
    Runs a command, and returns its exit status: that of `main`, or 0 if it returns something else; 1 for an error,
    which is said in a sentence; 2 for a [`UsageError`]; 130 if it is interrupted. SIGTERM ends the process as
    it always does, but not before what an error would clean up is cleaned up.
    """
    try:
        with _sigterm_as_error():
            status = main()
        return status if isinstance(status, int) else DONE
    except Terminated:
        signal.raise_signal(signal.SIGTERM)  # whoever sent it looks for that end
        return TERMINATED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads the output has seen enough; what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (OSError, ValueError, ImportError, StrictDataclassError) as error:
        message = in_a_sentence(error) if isinstance(error, OSError | ImportError) else str(error)
        print(f"{program}: {message}", file=sys.stderr)
        return REFUSED if isinstance(error, UsageError) else FAILED


@contextmanager
def _sigterm_as_error() -> Iterator[None]:
    """Makes an error of SIGTERM, so that nothing half written stays; a handler that is there already is left."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
