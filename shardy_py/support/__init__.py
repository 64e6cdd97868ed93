"""Arguments, texts, files, integers, signatures, element types: what every room needs."""
