"""The parts of the page: each turns figures into words, tables and drawings."""
