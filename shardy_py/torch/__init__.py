"""Programs of PyTorch: read, placed, and run on the processes of a device mesh."""
