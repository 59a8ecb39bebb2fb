"""A callback for transformers' Trainer: one dtlint.Monitor for each training."""

from __future__ import annotations

import logging
from typing import Any

from dtlint.monitor import Monitor

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("transformers is not installed here; install it with: pip install transformers") from error

__all__ = ["TransformersMonitor"]

logger = logging.getLogger("dtlint")


class TransformersMonitor(TrainerCallback):  # type: ignore[misc]
    """`Trainer(..., callbacks=[TransformersMonitor()])` monitors the training, as `dtlint.Monitor` does a loop.

    With `report_to="wandb"` the readings go to that run, too, and with `report_to="tensorboard"` into the folder
    `dtlint` of the output directory.
    """

    def __init__(self, **options: Any) -> None:
        """Take the options of `dtlint.Monitor`, as in `TransformersMonitor(every=10, modules="*.attn")`."""
        self.options = options
        self.monitor: Monitor | None = None
        """That of the training that runs, or ran last."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin a monitor. Whatever cannot be monitored, the training goes on."""
        self._close()
        optimizer = kwargs.get("optimizer")
        options: dict[str, Any] = {"steps": state.global_step, **_reported(args), **self.options}
        try:
            self.monitor = Monitor(kwargs["model"], optimizer, getattr(optimizer, "scaler", None), **options)  # type: ignore[arg-type]
        except (TypeError, ValueError, ImportError) as error:
            logger.warning("dtlint monitors nothing of this training: %s", error)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End it."""
        self._close()

    def _close(self) -> None:
        if self.monitor is not None:
            self.monitor.close()


def _reported(args: Any) -> dict[str, Any]:
    """Where the Trainer itself reports to, as a monitor's options."""
    to = getattr(args, "report_to", None) or []
    found: dict[str, Any] = {}
    if "wandb" in to:
        found["wandb"] = True
    if "tensorboard" in to:
        found["tensorboard"] = f"{args.output_dir}/dtlint"
    return found
