"""What each kind of statement and expression does to a state: functions in dispatch tables, from a context and a node."""
