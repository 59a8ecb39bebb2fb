"""Precision plans: which modules of a model must stay in float32 if the rest runs in float16. Worked out from records alone."""
