"""Networks and learners that several workloads train."""
