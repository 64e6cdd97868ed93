"""Answers about a run, with the names of the program."""
