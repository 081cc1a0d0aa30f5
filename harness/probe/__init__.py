"""Reads what a machine is, as plain values. Standard library and the drivers' own libraries alone.

`python -m harness.probe` prints it as JSON, so that a node without gpudyno's packages can be asked too.
What cannot be read is null; nothing here raises.
"""
