"""Programs on the devices that run them."""
