"""Reads what a machine is, as plain values. Standard library and the drivers' own libraries alone.

What cannot be read is null; nothing here raises.
"""
