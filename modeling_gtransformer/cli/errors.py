"""Maps the errors of a command to one-sentence messages and exit statuses."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub.errors import StrictDataclassError

from ..runtime.usage_error import UsageError, user_message


DONE, FAILED, REFUSED, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


class Terminated(BaseException):
    """The process received SIGTERM."""


def run(program: str, main: Callable[[], Any]) -> int:
    """
    Runs a command, and returns its exit status: the number returned by `main`, or 0; 1 for an error, with a message;
    2 for a [`UsageError`]; 130 for SIGINT. SIGTERM terminates the process after cleanup.
    """
    try:
        with _sigterm_as_error():
            from ..runtime import registration  # noqa: F401 (takes seconds, so help and version do without)

            status = main()
        return status if isinstance(status, int) else DONE
    except Terminated:
        signal.raise_signal(signal.SIGTERM)  # so that the parent sees the signal
        return TERMINATED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe. Flushing the buffer at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (OSError, ValueError, ImportError, StrictDataclassError) as error:
        message = user_message(error) if isinstance(error, OSError | ImportError) else str(error)
        print(f"{program}: {message}", file=sys.stderr)
        return REFUSED if isinstance(error, UsageError) else FAILED


@contextmanager
def _sigterm_as_error() -> Iterator[None]:
    """Turns SIGTERM into an exception, so that cleanup runs, unless a handler exists."""
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
