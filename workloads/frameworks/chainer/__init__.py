"""Workloads on Chainer, the image chainer: Chainer 7.8.1, retired."""
