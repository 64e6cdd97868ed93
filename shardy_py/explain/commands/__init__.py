"""The commands that explain a program."""
