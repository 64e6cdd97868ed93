"""A plugin whose own dependency is missing."""

import a_module_that_nobody_has  # noqa: F401
