"""Tools of this project's own tests: the reference, comparison, random programs, shrinking."""
