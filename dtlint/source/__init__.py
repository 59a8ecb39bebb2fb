"""What a file is: discovery, decoding, notebooks, suppression comments. Knows nothing of dtypes or rules."""
