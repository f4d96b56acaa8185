"""Errors of a command, each in a sentence and with an exit status."""

import os
import sys
from collections.abc import Callable


DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


class UsageError(ValueError):
    """The command cannot begin: an argument is wrong, or the model, the glossary or the output that it names."""


def in_a_sentence(error: BaseException) -> str:
    """The message of an error, without the class where the message was written for users."""
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if not message or not isinstance(error, OSError | ValueError | ImportError):
        return f"{type(error).__name__}: {message}".removesuffix(": ")
    return message


def run(program: str, main: Callable[[], int | None]) -> int:
    """
    Runs a command, and returns its exit status: what `main` returns or 0; 1 for an error, which is said in a sentence;
    2 for a [`UsageError`]; 130 if it is interrupted.
    """
    try:
        return main() or DONE
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads the output has seen enough; what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (OSError, ValueError, ImportError) as error:
        message = str(error) if isinstance(error, ValueError) else in_a_sentence(error)
        print(f"{program}: {message}", file=sys.stderr)
        return REFUSED if isinstance(error, UsageError) else FAILED
