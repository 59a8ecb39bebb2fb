"""The editor: messages to it, its answers, and what it is capable of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtlint.server.positions import negotiated

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.server.wire import Message

__all__ = [
    "CANCELLED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_INITIALIZED",
    "PARSE_ERROR",
    "Client",
    "Params",
]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR, NOT_INITIALIZED, CANCELLED = -32603, -32002, -32800
"""Error codes of JSON-RPC and of the Language Server Protocol."""

Params = dict[str, Any]


class Client:
    """The editor, as the server sees it.

    Args:
        send: sends a message.

    Attributes:
        encoding: of positions, as agreed at `initialize`.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._capabilities: Params = {}
        self._shown: set[str] = set()
        self._requests = 0
        self._pending: dict[object, Callable[[Any], None]] = {}
        self.encoding = "utf-16"

    def initialize(self, capabilities: object) -> None:
        """Take the capabilities that it has sent."""
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.encoding = negotiated(self.can("general", "positionEncodings"))

    def can(self, *path: str) -> Any:
        """The value of a capability; None where the client does not mention it."""
        found: Any = self._capabilities
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def reply(self, id: object, result: Any) -> None:
        """Answer a request."""
        self._send({"id": id, "result": result})

    def refuse(self, id: object, code: int, message: str) -> None:
        """Answer a request with an error."""
        self._send({"id": id, "error": {"code": code, "message": message}})

    def notify(self, method: str, params: Params) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Params, then: Callable[[Any], None] = lambda result: None) -> None:
        """Send a request; `then` gets the result, if one comes."""
        self._requests += 1
        self._pending[self._requests] = then
        self._send({"id": self._requests, "method": method, "params": params})

    def responded(self, message: Message) -> None:
        """The client has answered a request of the server."""
        then = self._pending.pop(message["id"], None) if isinstance(message["id"], (int, str)) else None
        if then is not None and "result" in message:
            then(message["result"])

    def show(self, problem: str) -> None:
        """Show the user a problem, once in a session."""
        if problem not in self._shown:
            self._shown.add(problem)
            self.notify("window/showMessage", {"type": 1, "message": f"dtlint: {problem}"})

    def refresh_inlay_hints(self) -> None:
        """Have it ask for inlay hints again, where it can."""
        if self.can("workspace", "inlayHint", "refreshSupport"):
            self.request("workspace/inlayHint/refresh", {})
