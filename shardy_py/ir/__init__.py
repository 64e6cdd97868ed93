"""The op graph that every frontend fills and every stage reads."""
