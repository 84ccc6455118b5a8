"""What the parts of tests/run that are written in Python share."""
