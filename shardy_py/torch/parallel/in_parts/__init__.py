"""Ops over a sharded dimension as ops on its parts, between which only numbers for each row are combined."""
