"""Errors that users can correct, and messages that state errors of any kind in a sentence."""


class UsageError(ValueError):
    """Work cannot begin, as an argument is wrong, or the model, the glossary or the output that it names."""


def user_message(error: BaseException) -> str:
    """The message of an error, without the class where the message was written for users."""
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if not message or not isinstance(error, OSError | ValueError | ImportError):
        return f"{type(error).__name__}: {message}".removesuffix(": ")
    return message
