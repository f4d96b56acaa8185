"""A limit on the requests that one client has under way."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from .api_error import ApiError


class ClientLimit:
    """Counts the requests of every client that are under way, and refuses those above `most`."""

    def __init__(self, most: int):
        self.most = most
        self.under_way: Counter[str] = Counter()

    @contextmanager
    def request(self, client: str) -> Iterator[None]:
        """
        Counts a request of a client while it is under way.

        Raises:
            ApiError: the client has too many requests under way.
        """
        if self.under_way[client] >= self.most:
            raise ApiError(429, f"You have {self.most} requests under way: wait for one of them.", retry_after=1)
        self.under_way[client] += 1
        try:
            yield
        finally:
            self.under_way[client] -= 1
            if not self.under_way[client]:
                del self.under_way[client]
