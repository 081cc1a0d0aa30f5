"""What the verbs do, by concern. The only place that knows both harness and report."""
