"""Pipeline schedules: in which order each mesh runs its parts of microbatches."""
