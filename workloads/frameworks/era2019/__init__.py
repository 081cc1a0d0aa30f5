"""Workloads on the stacks of 2019, images era-2019 and era-2019-turing: torch 1, fastai 1 and Python 3.7."""
