"""Explanations of shardings: the record of a run, in ids, and the answers from it, in names."""
