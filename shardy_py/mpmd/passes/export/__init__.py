"""Passes that turn fragments into functions, one program per mesh."""
