"""Components for the tasks of Peters et al. 2018, table 1. Each has a sub-package, which imports
`tasks/shared` and lower packages, never another task."""
