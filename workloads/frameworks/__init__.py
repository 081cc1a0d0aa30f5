"""Other frameworks' versions of the workloads, and those for the stacks of 2019: a folder for each."""
