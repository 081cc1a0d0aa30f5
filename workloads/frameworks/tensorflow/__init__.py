"""Versions of workloads for TensorFlow 2 and for Keras 3 on it."""
