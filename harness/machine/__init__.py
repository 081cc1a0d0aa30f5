"""The machine that trials run on: what it is, what else it does, which devices are taken, its names."""
