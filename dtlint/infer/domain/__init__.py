"""What is known of a value: immutable, hashable, with `join` and `widen`. No state, no input or output, no syntax."""
