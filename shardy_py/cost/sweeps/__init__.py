"""Many schedules on one program: evaluation, comparison, search, storage."""
