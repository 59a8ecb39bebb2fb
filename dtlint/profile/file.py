"""Reads and writes a trace file of torch.profiler, in Chrome's JSON format."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from dtlint.atomic import write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SUFFIX", "TraceFileError", "load_trace", "save_trace"]

SUFFIX = ".pt.trace.json"
"""By which TensorBoard's plugin knows such files; it also takes them with .gz behind."""


class TraceFileError(ValueError):
    """It is no trace file; the message is one line that says so."""


def load_trace(path: Path) -> dict[str, Any]:
    """The file as JSON has it: `traceEvents`, a list of objects, and what else the profiler wrote.

    Raises:
        TraceFileError: it is missing, damaged, or another file.
    """
    try:
        content = path.read_bytes()
        data = json.loads(gzip.decompress(content) if path.name.endswith(".gz") else content)
    except OSError as error:  # a file that is no gzip is one, too
        raise TraceFileError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise TraceFileError(f"{path} is no trace of torch.profiler: it is not valid JSON, or cut off") from error
    events = data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise TraceFileError(f"{path} is no trace of torch.profiler; `dtlint trace --profile DIR SCRIPT` writes one")
    trace: dict[str, Any] = data
    return trace


def save_trace(trace: dict[str, Any], path: Path) -> None:
    """Write it, wholly or not at all. Numbers that JSON lacks are refused: a viewer would refuse the whole file.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, json.dumps(trace, allow_nan=False, separators=(",", ":")).encode())
