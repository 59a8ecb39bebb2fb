"""What torch, NumPy and Python's own functions do: each thing modelled is one function or one row, in one place."""
