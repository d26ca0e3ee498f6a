"""Components for the tasks of Peters et al. 2018, table 1: a sub-package for each, which imports
`tasks/shared` and lower rooms, never another task."""
