"""The dialect ``xla_gpu`` in xDSL: its ops, their text in both spellings, and the context that knows them."""
