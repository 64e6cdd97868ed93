"""The bundled dialect plugins; the core finds them by entry point, as any other plugin."""
