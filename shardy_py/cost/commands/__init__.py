"""The commands that price a program."""
