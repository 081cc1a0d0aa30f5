"""Attacks on everything that gpudyno reads and on its runs: `python -m tests.campaign 20m`.

An attack is one input or one fault, made from its seed alone: `python -m tests.campaign record:7` repeats it.
"""
