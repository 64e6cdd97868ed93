"""Passes over programs of several meshes, under upstream's names."""
