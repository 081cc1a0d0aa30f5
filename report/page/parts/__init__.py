"""The parts below page one: each a view of the Analysis, null where it is empty."""
