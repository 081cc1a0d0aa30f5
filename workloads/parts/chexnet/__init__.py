"""Karmanov 2018's CheXNet, as every framework has it alike: terms, network, weights, data, measurement."""
