"""The parts of explicit resharding: which axes an op computes on, and the ops that bring its values there."""
