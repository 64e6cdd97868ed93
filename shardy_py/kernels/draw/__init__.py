"""Pictures of what the threads of a warp read and write."""
