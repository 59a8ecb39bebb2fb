"""Trace files of torch.profiler: dtlint's own tracks in them, and what they tell of device time by dtype. Without torch."""
