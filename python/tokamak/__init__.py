"""Tokamak: a distributed in-memory store of immutable objects, read in place in shared memory.

    import tokamak

    client = tokamak.Client("/run/tokamak/tokd.sock")
    client.put("greeting", b"hello")
    bytes(client.get("greeting"))

docs/python.md is the guide; tokamak.aio is for asyncio, tokamak.testing starts clusters for tests, tokamak.arrow reads and
writes tables.
"""

from . import errors
from ._native import (ClusterView, Event, EventKind, Events, Evicted, Interrupt, NodeInfo, NodeState, Object, ObjectId,
                      ObjectInfo, ObjectStat, ObjectState, Origin, PullProgress, Subscription, ViewedNode, Writer, __version__)
from .client import Client
from .errors import (AlreadyExists, Cancelled, DeadlineExceeded, Error, FailedPrecondition, InvalidArgument, NotFound,
                     PermissionDenied, ResourceExhausted, Unavailable)

__all__ = [
    "AlreadyExists", "Cancelled", "Client", "ClusterView", "DeadlineExceeded", "Error", "Event", "EventKind", "Events", "Evicted",
    "FailedPrecondition", "Interrupt", "InvalidArgument", "NodeInfo", "NodeState", "NotFound", "Object", "ObjectId", "ObjectInfo",
    "ObjectStat", "ObjectState", "Origin", "PermissionDenied", "PullProgress", "ResourceExhausted", "Subscription", "Unavailable",
    "ViewedNode", "Writer", "__version__", "errors",
]
