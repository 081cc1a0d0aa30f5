"""Puts a fake CUDA behind torch in every Python that has this folder in its PYTHONPATH."""

import fake_cuda
import torch

fake_cuda.install(torch)
