"""Explanations of programs over several meshes: reasons for the meshes of ops, and for transfers."""
