"""Workloads that share their steps by Horovod 0.28.1, over TensorFlow 2.12: the image horovod."""
