"""Tables of arguments, of options and of keys are made from the code."""

import pytest

from tests.docs import arguments, machines
from tests.docs import command_options as commands
from tests.unit.cli.all_commands import all_commands

COMMANDS = list(all_commands())


@pytest.mark.parametrize("maker", [arguments, commands, machines], ids=lambda maker: maker.PAGE.stem)
def test_the_table_is_up_to_date(maker):
    """Who changes an option runs ``python -m tests.docs``."""
    assert maker.PAGE.read_text(encoding="utf-8") == maker.page()


def test_every_command_has_a_section():
    """The page has the commands that there are, and no other."""
    assert sorted(commands.sections()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_of_a_command_is_on_the_page(name):
    """A flag is in the section of its command, or in the one that this section refers to."""
    options = commands.options_of(name)
    text = commands.sections()[name]
    if {item.name for item in options} >= commands.PROGRAM_NAMES:
        assert "[options of a program](#options-of-a-program)" in text or "`shardy compare` except" in text
        options = [item for item in options if item.name not in commands.PROGRAM_NAMES]
    if "`shardy compare` except" in text:
        text += commands.sections()["compare"]
    # What every command that reads a module takes stands at the top of the page.
    others = [item.opts for item in options if item.name != "untrusted"]
    assert [flags for flags in others if not any(f"`{flag}`" in text or f"`{flag} " in text for flag in flags)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_flag_of_a_table_is_made_up(name):
    """A row of the table of a command begins with flags that it has."""
    rows = [line.split(" | ")[0] for line in commands.sections()[name].splitlines() if line.startswith("| `-")]
    flags = {part.split()[0] for row in rows for part in row.strip("| ").replace("`", "").split(", ")}
    assert flags <= {flag for item in commands.options_of(name) for flag in item.opts}
