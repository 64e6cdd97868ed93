"""The commands that run a program."""
