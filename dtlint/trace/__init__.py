"""The dynamic half: run a program, see every operator, judge afterwards. `record` and `judge` need no torch."""
