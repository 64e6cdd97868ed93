"""``shardy schedule``, ``propagate --schedule``, and what ``shardy plugins`` shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shardy_py.schedule.builtin import BUILTIN, DEFAULT
from shardy_py.schedule.toml import parse_schedule

PLUGIN = """
import shardy_py as sdy
from shardy_py.plugins import Entry, OpPriority, Selector

toy = sdy.Dialect("toy")
toy.op("toy.window", traits=[sdy.Pure], rule="i j -> i j", need_replication="j")


@sdy.hookimpl
def shardy_register_dialects():
    return [toy]


@sdy.hookimpl
def shardy_register_schedules():
    return [OpPriority(1, Entry(Selector(names=("toy.window",))))]
"""


def test_the_default_is_printed(module: str, shardy: Any) -> None:
    """Without a file the schedule that runs by default is printed, to read or as TOML."""
    assert shardy("schedule").stdout == f"{DEFAULT}\n"
    assert parse_schedule(shardy("schedule", "--toml").stdout) == DEFAULT


def test_a_built_in_schedule_is_printed(module: str, shardy: Any) -> None:
    """Every built-in schedule has a name."""
    for name, schedule in BUILTIN.items():
        assert parse_schedule(shardy("schedule", "--builtin", name, "--toml").stdout) == schedule


def test_a_file_is_printed_with_what_follows_it(module: str, shardy: Any) -> None:
    """A file shows the levels that follow its own, too, and mistakes in it with its name."""
    Path("s.toml").write_text('then = "flat"\n[[level]]\nname = "mine"\nentries = ["toy.window"]\n')
    assert shardy("schedule", "s.toml").stdout == "0. mine:\n  toy.window -> BOTH\n1. everything:\n  * -> BOTH\n"
    Path("s.toml").write_text("[[level]]\n")
    done = shardy("schedule", "s.toml")
    assert done.exit_code == 2
    assert done.stderr.startswith("s.toml: error: level 0: there are no entries [invalid-schedule]")
    assert shardy("schedule", "s.toml", "--builtin", "flat").exit_code == 2


def test_propagate_takes_a_schedule(module: str, shardy: Any) -> None:
    """A name and a file do; another text is an error that names both."""
    Path("s.toml").write_text('[[level]]\nentries = ["stablehlo.*"]\n')
    default = shardy("propagate", module, "-q").stdout
    assert shardy("propagate", module, "-q", "--schedule", "default").stdout == default
    assert shardy("propagate", module, "-q", "--schedule", "s.toml").exit_code == 0
    done = shardy("propagate", module, "-q", "--schedule", "other")
    assert done.exit_code == 2
    assert "elementwise-first" in done.stderr


def test_a_plugin_shows_all_it_brings(module: str, shardy: Any) -> None:
    """Source, ops, traits and priorities of a plugin in a file are listed, and its priorities run."""
    Path("window.py").write_text(PLUGIN)
    actual = {item["name"]: item for item in json.loads(shardy("plugins", "--json", "--plugin", "window.py").stdout)}
    assert actual["window"]["ops"] == ["toy.window"]
    assert actual["window"]["traits"] == ["Pure"]
    assert actual["window"]["source"].endswith("window.py")
    assert actual["window"]["priorities"] == ["level 1: toy.window -> BOTH"]
    assert "window priorities: level 1: toy.window -> BOTH" in shardy("plugins", "--plugin", "window.py").stdout
    assert "  toy.window -> BOTH\n2. " in shardy("schedule", "--plugin", "window.py").stdout


def test_a_clash_is_a_warning_unless_plugins_are_strict(module: str, shardy: Any) -> None:
    """An op of two plugins is shown with both owners, and stops nothing but strict runs."""
    Path("one.py").write_text(PLUGIN)
    Path("two.py").write_text(PLUGIN)
    both = ("--plugin", "one.py", "--plugin", "two.py")
    done = shardy("rules", module, *both)
    assert done.exit_code == 0
    assert "need_replication" in done.stdout
    assert "warning: 'toy.window' op: the op is defined by plugin 'one', dialect 'toy' and by" in done.stderr
    assert shardy("rules", module, *both, "--strict-plugins").exit_code == 2
    listed = shardy("plugins", *both)
    assert (listed.exit_code, "op-clash" in listed.stdout, "error:" in listed.stdout) == (0, True, False)
    assert shardy("plugins", *both, "--strict-plugins").exit_code == 2


def test_what_a_run_warns_of_is_a_warning_in_the_list(module: str, shardy: Any) -> None:
    """An op outside of its dialect stops nothing, and so the list of plugins calls it no error, in both forms."""
    Path("q.py").write_text(PLUGIN.replace("toy.window", "z.window"))
    for more in ((), ("--json",)):
        done = shardy("plugins", "--plugin", "q.py", *more)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "q.py:" in done.stdout
        assert "warning: 'z.window' op: plugin 'q' defines the op in the dialect 'toy'" in done.stdout
        assert "error:" not in done.stdout
