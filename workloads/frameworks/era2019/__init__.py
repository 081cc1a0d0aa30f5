"""Workloads on the stack of early 2019, the image era-2019: torch 1.0 and fastai 1 under Python 3.7."""
