"""The releases of torch that brought the names that a fix may write, where code still runs on older ones."""

from __future__ import annotations

__all__ = ["FIRST_RELEASES"]

FIRST_RELEASES: dict[str, tuple[int, int]] = {
    "torch.autocast": (1, 10),
    "torch.amp.autocast": (1, 12),
    "torch.amp.GradScaler": (2, 3),
    "torch.amp.custom_fwd": (2, 4),
    "torch.amp.custom_bwd": (2, 4),
    **dict.fromkeys(
        (
            *("torch.get_autocast_dtype", "torch.set_autocast_dtype"),
            *("torch.is_autocast_enabled", "torch.set_autocast_enabled"),
        ),
        (2, 4),
    ),
    **dict.fromkeys(("torch.float8_e4m3fn", "torch.float8_e5m2"), (2, 1)),
    **dict.fromkeys(("torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz"), (2, 2)),
    **dict.fromkeys(("torch.uint16", "torch.uint32", "torch.uint64"), (2, 3)),
}
"""By qualified name, major and minor. `is_autocast_enabled` and its kin are older, and take the device since then."""
