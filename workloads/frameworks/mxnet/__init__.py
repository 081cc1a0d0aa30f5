"""Workloads on Apache MXNet's Gluon, the image mxnet: MXNet 1.9.1, retired."""
