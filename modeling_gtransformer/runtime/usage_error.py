"""Errors that users can correct, and one-sentence messages for errors of any kind."""


class UsageError(ValueError):
    """An argument is wrong, or its model, glossary or output is unusable, so work cannot start."""


def user_message(error: BaseException) -> str:
    """Returns the message of an error on one line, with the class if the message was not written for users."""
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if not message or not isinstance(error, OSError | ValueError | ImportError):
        return f"{type(error).__name__}: {message}".removesuffix(": ")
    return message
