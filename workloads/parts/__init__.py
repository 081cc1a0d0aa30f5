"""What workloads share: imported by them inside the container, as `parts`."""
