"""What a program does to dtypes, as facts that can be kept in a file, and what changed in them from one run to another.

Pure logic over trace records. It is about dtypes alone; what two runs computed is compared elsewhere, by `dtlint compare`.
"""
