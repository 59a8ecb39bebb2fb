"""A callback for Lightning's Trainer: one dtlint.Monitor for each fit."""

from __future__ import annotations

import logging
from typing import Any

from dtlint.monitor import Monitor, Reading

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError as error:
        raise ImportError("lightning is not installed here; install it with: pip install lightning") from error

__all__ = ["LightningMonitor"]

logger = logging.getLogger("dtlint")


class LightningMonitor(Callback):  # type: ignore[misc]
    """`Trainer(..., callbacks=[LightningMonitor()])` monitors the fit, as `dtlint.Monitor` does a loop.

    The readings go to the Trainer's loggers, too. Gradients are read before Lightning clips them. Of several
    optimizers the first is monitored.
    """

    def __init__(self, **options: Any) -> None:
        """Take the options of `dtlint.Monitor`, as in `LightningMonitor(every=10, modules="*.attn")`."""
        super().__init__()
        self.options = options
        self.monitor: Monitor | None = None
        """That of the fit that runs, or ran last."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin a monitor. Whatever cannot be monitored, the training goes on."""
        self._close()
        optimizers = trainer.optimizers
        if len(optimizers) > 1:
            logger.warning("dtlint monitors the first of %d optimizers", len(optimizers))
        scaler = getattr(trainer.precision_plugin, "scaler", None)

        def log(reading: Reading) -> None:
            numbers = {f"dtlint/{name}": value for name, value in reading.scalars()}
            for each in trainer.loggers:
                each.log_metrics(numbers, step=trainer.global_step)

        options: dict[str, Any] = {"steps": trainer.global_step, "listener": log, **self.options}
        try:
            self.monitor = Monitor(pl_module, optimizers[0] if optimizers else None, scaler, **options)  # type: ignore[arg-type]
        except (TypeError, ValueError, ImportError) as error:
            logger.warning("dtlint monitors nothing of this fit: %s", error)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Read the gradients, which may be clipped next."""
        if self.monitor is not None and optimizer is trainer.optimizers[0]:
            self.monitor.read_gradients()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """End it."""
        self._close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End it."""
        self._close()

    def _close(self) -> None:
        if self.monitor is not None:
            self.monitor.close()
