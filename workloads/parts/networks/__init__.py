"""Networks that workloads train."""
