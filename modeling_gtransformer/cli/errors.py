"""Errors of a command, each in a sentence and with an exit status."""

import os
import sys
from collections.abc import Callable
from typing import Any

from huggingface_hub.errors import StrictDataclassError

from ..usage_error import UsageError, in_a_sentence


DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


def run(program: str, main: Callable[[], Any]) -> int:
    """
    Runs a command, and returns its exit status: that of `main`, or 0 if it returns something else; 1 for an error,
    which is said in a sentence; 2 for a [`UsageError`]; 130 if it is interrupted.
    """
    try:
        status = main()
        return status if isinstance(status, int) else DONE
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
