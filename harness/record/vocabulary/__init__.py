"""The names that records are about, and what is known of each: precisions, workloads."""
