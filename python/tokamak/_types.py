"""What annotations name."""

from __future__ import annotations

from typing import Any, Optional, Union

from ._native import ObjectId

IdLike = Union[ObjectId, bytes, str]
Seconds = Optional[float]
Readable = Any  # what has the buffer protocol, in one piece
