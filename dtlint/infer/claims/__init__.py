"""What `dtlint infer` claims of a program, rebuilt from the facts of a reading: dtypes in words, notes, derivations."""
