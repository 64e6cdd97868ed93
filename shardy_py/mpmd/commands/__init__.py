"""The commands about programs over several meshes."""
