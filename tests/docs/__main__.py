"""Writes the pages, and the tables of pages, that are made from the code: ``python -m tests.docs``.

The page of PyTorch's operators is written where PyTorch is installed.
"""

from importlib.util import find_spec

from tests.docs import arguments, command_options, machines, passes, torch_operators

_MAKERS = (arguments, command_options, machines, passes)
for _maker in (*_MAKERS, torch_operators) if find_spec("torch") else _MAKERS:
    _maker.PAGE.write_text(_maker.page(), encoding="utf-8")
