"""Waits for more objects than one call waits for, in batches."""

from __future__ import annotations

import time
from collections.abc import Callable

from ._types import IdLike, Seconds

BATCH = 2048  # Client::kMaxWaited
TURN = 0.1  # seconds that one batch is waited for, where any of them may bring what is missing

# Which of the ids exist, once so many do or the time is over.
Wait = Callable[[list[IdLike], int, Seconds], list[bool]]


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def wait_for_many(wait: Wait, ids: list[IdLike], count: int, timeout: Seconds) -> list[bool]:
    """As Client.wait(). All are waited for batch by batch; where some are enough, batches take turns."""
    deadline = None if timeout is None else time.monotonic() + timeout
    batches = [ids[at:at + BATCH] for at in range(0, len(ids), BATCH)]
    if count >= len(ids):
        return [exists for batch in batches for exists in wait(batch, len(batch), _left(deadline))]
    while True:
        found = [wait(batch, len(batch), 0.0) for batch in batches]
        for number, batch in enumerate(batches):
            missing = count - sum(map(sum, found))
            left = _left(deadline)
            if missing <= 0 or left == 0.0:
                return [exists for part in found for exists in part]
            have = sum(found[number])
            if have < len(batch):
                found[number] = wait(batch, have + 1, TURN if left is None else min(left, TURN))
