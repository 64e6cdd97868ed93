"""Ways into and out of the op graph, one package per kind of input."""
