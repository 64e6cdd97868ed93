"""The record of a run, in ids: updates, refusals and their reasons."""
