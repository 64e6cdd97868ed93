"""Programs over several meshes: stages, transfers, pipeline schedules, their simulation and execution."""
