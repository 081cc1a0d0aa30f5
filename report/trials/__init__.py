"""The trials on record, as one table for whoever wants it: `load("results")`."""

from report.trials.reading import load

__all__ = ["load"]
