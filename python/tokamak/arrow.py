"""Apache Arrow tables (python3's pyarrow, which is not a dependency): written as an IPC stream, read in place.

    tokamak.arrow.put_table(client, "table", table)
    table = tokamak.arrow.get_table(client, "table")     # its columns are shared memory, pinned while it lives
"""

from __future__ import annotations

from typing import Any

import pyarrow

from ._types import IdLike, Seconds
from .client import Client


def put_table(client: Client, id: IdLike, table: Any, *, timeout: Seconds = 5.0, confirmed: bool = False) -> None:
    """Puts a pyarrow.Table or RecordBatch as an Arrow IPC stream, written into shared memory directly."""
    size = pyarrow.MockOutputStream()
    _write(size, table)
    with client.create(id, size.size(), timeout=timeout, confirmed=confirmed) as writer:
        memory = pyarrow.py_buffer(writer)
        with pyarrow.FixedSizeBufferWriter(memory) as sink:
            _write(sink, table)
        del memory, sink  # views of what is sealed now


def get_table(client: Client, id: IdLike, timeout: Seconds = 10.0) -> Any:
    """The table of an Arrow IPC stream, without a copy."""
    return pyarrow.ipc.open_stream(pyarrow.py_buffer(client.get(id, timeout))).read_all()


def _write(sink: Any, table: Any) -> None:
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
