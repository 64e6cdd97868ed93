"""Plans for reshards: the collectives from one sharding to another, found on shardings alone; and their patterns."""
