"""Fusions out of programs: a whole function, the fusions of an HLO module, pieces that are found greedily."""
