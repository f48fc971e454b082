"""What annotations name."""

from __future__ import annotations

from typing import Optional, Union

from ._native import ObjectId

IdLike = Union[ObjectId, bytes, str]
Seconds = Optional[float]
