"""Replaces attributes of modules and classes, and puts every one back."""

from __future__ import annotations

from typing import Any

__all__ = ["Patches"]

_ABSENT = object()


class Patches:
    """What was replaced, in order."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name`; returns what stood there, inherited or its own, or None."""
        own = vars(owner).get(name, _ABSENT)
        before = getattr(owner, name, None)
        setattr(owner, name, value)
        self._replaced.append((owner, name, own, value))
        return before

    @property
    def functions(self) -> list[Any]:
        """What stands in the places now."""
        return [value for *_, value in self._replaced]

    def undo(self) -> None:
        """Put all back, the last first. What another has replaced since is left to him."""
        while self._replaced:
            owner, name, own, value = self._replaced.pop()
            if vars(owner).get(name, _ABSENT) is not value:
                continue
            if own is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
