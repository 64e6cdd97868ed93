"""Frontends: import into the op graph and export from it, one package per kind of program."""
