"""Everything that gpudyno reads, drawn almost right, and its runs with something taken away: long tests.

`invoke test --whole --only "tests/hostile --hypothesis-seed=7"` draws the same again.
"""
