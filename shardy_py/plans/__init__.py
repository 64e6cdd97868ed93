"""Plans: a sharding for every input, and constraints inside, with a bound that says what a better plan could save."""
