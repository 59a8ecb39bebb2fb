"""JSON-RPC messages on a stream, each behind a header that says how long it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["Malformed", "Message", "read", "write"]

Message = dict[str, Any]

_LARGEST = 1 << 28
"""Bytes of a message. What claims to be longer is no message."""


class Malformed(ValueError):
    """What was read is no message. The stream goes on behind it."""


def read(stream: BinaryIO) -> Message | None:
    """The next message; None at the end of the stream.

    Raises:
        Malformed: there is something else. The next call reads on behind it.
    """
    length: int | None = None
    while True:
        line = stream.readline()
        if not line:
            return None
        name, colon, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and colon:
            length = int(value) if value.strip().isdigit() else -1
        elif not line.strip() and length is not None:
            break
        elif line.strip() and not colon:
            raise Malformed(f"a header was expected, not {line[:40]!r}")
    if not 0 <= length <= _LARGEST:
        raise Malformed("Content-Length says no length of a message")
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the message is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise Malformed("the message is no JSON object")
    return message


def write(stream: BinaryIO, message: Message) -> None:
    """Send a message."""
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    stream.flush()
