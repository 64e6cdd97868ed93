"""Why a tensor has the sharding it has: the trace of a run, and what can be read from it."""
