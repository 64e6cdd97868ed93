"""Passes that ready a program for propagation."""
