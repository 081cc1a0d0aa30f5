"""The pictures and rows of one workload, and of frameworks that train one network alike."""
