"""Karmanov 2018's two small networks, alike for every framework: terms, networks, data, loop."""
