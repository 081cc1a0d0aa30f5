"""Intervals and verdicts from runs in blocks."""
