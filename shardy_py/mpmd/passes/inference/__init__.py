"""Mesh inference: a mesh for every op that no name has put on one."""
