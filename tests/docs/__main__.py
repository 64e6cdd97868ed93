"""Writes the pages, and the tables of pages, that are made from the code: ``python -m tests.docs``."""

from tests.docs import arguments, command_options, machines, passes

for _maker in (arguments, command_options, machines, passes):
    _maker.PAGE.write_text(_maker.page(), encoding="utf-8")
