"""Studies: programs, schedules, meshes, machines and seeds as one table, each row with its provenance."""
