"""What calls raise: one class for each kind of error, below Error, and beside a built-in exception of the same meaning."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """Anything that went wrong in the store or on the way to it; the text names the remedy.

    errors: of a call about several objects, what each of them met, or None; else empty.
    """

    errors: Sequence[Error | None] = ()

    def __str__(self) -> str:  # KeyError would quote it
        return str(self.args[0]) if self.args else ""

    def among(self, errors: Sequence[Error | None]) -> Error:
        """Of its kind, for a call of which this was the first error."""
        failed = sum(error is not None for error in errors)
        whole = type(self)(str(self) if len(errors) == 1 else f"{failed} of {len(errors)} failed, the first: {self}")
        whole.errors = errors
        return whole


class Cancelled(Error):
    """An Interrupt was fired."""


class InvalidArgument(Error, ValueError):
    """What was asked for makes no sense."""


class DeadlineExceeded(Error, TimeoutError):
    """The time-out has passed; the text says what was in the way."""


class NotFound(Error, KeyError):
    """No node has the object."""


class AlreadyExists(Error, ValueError):
    """The id is taken."""


class PermissionDenied(Error, PermissionError):
    """This user may not."""


class ResourceExhausted(Error, MemoryError):
    """No room, or a bound is reached; the text says which, and who holds it."""


class FailedPrecondition(Error, RuntimeError):
    """Not in this state: a client that only reads creates nothing, and a forked child connects anew."""


class Unavailable(Error, ConnectionError):
    """No daemon, the connection is lost, or the directory is away."""


# By the numbers of gRPC, which are those of the C++ client.
_ERRORS: dict[int, type[Error]] = {
    1: Cancelled,
    3: InvalidArgument,
    4: DeadlineExceeded,
    5: NotFound,
    6: AlreadyExists,
    7: PermissionDenied,
    8: ResourceExhausted,
    9: FailedPrecondition,
    14: Unavailable,
}


def error_of(code: int, message: str) -> Error:
    """The exception for an error of the C++ client."""
    return _ERRORS.get(code, Error)(message)
