"""The bundled dialect plugins; the core finds them by entry point, as it finds anybody's."""
