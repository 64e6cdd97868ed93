"""``shardy cost``."""

from __future__ import annotations

import json
from pathlib import Path

MACHINE = """
name = "mine"

[device]
memory_bytes = 1e9
memory_bandwidth = 1e9

[device.flops]
default = 1e9

[[link]]
name = "x"
size = 2
bandwidth = 1e9

[[link]]
name = "y"
size = 2
bandwidth = 1e9
"""


def test_the_tables_name_every_number_and_how_it_was_obtained(module, shardy):
    """The numbers, the transfers and what could not be counted are printed."""
    done = shardy("cost", module, "--machine", "cpu-8")
    assert done.exit_code == 0
    for text in ("Cost on one of 4 devices, 8 devices of one host", "estimated time", "roofline", "argument bytes"):
        assert text in done.stdout
    assert "note: no operations are counted for ops without a rule: toy.window (1)" in done.stdout


def test_json_has_units_and_how(module, shardy):
    """Of the arguments a device has 4x16 and 16x4 numbers."""
    done = shardy("cost", module, "--machine", "cpu-8", "--json", "--transfers")
    data = json.loads(done.stdout)
    assert data["argument_bytes"]["value"] == 4 * (4 * 16 + 16 * 4)
    assert data["argument_bytes"]["unit"] == "B"
    assert data["machine"] == "8 devices of one host"
    assert len(data["transfers"]) >= sum(item["count"] for item in data["collectives"])


def test_a_machine_from_a_file_with_links_for_axes(module, shardy):
    """The machine is read from TOML, and each axis runs over the link that is given."""
    Path("mine.toml").write_text(MACHINE)
    done = shardy("cost", module, "--machine", "mine.toml", "--axis", "a=y", "--axis", "b=x", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["machine"] == "mine"


def test_a_layout_pads(module, shardy):
    """With the layouts of a TPU the arguments take more."""
    plain, padded = (
        json.loads(shardy("cost", module, "--machine", "cpu-8", "--json", *options).stdout)["argument_bytes"]["value"]
        for options in ((), ("--layout", "tpu-v5e"))
    )
    assert padded > plain


def test_what_is_wrong_is_said_on_stderr(module, shardy):
    """Unknown machines, wrong files, axes and layouts end with exit code 2 and their diagnostics."""
    Path("bad.toml").write_text(MACHINE.replace("bandwidth", "speed"))
    for options, expected in (
        (("--machine", "tpu-v5e"), "[unknown-machine]"),
        (("--machine", "none.toml"), "[invalid-machine]"),
        (("--machine", "bad.toml"), "unknown key 'speed'"),
        (("--machine", "cpu-8", "--axis", "a"), "[invalid-axis]"),
        (("--machine", "cpu-8", "--axis", "a=cpu", "--axis", "a=cpu"), "[invalid-axis]"),
        (("--machine", "cpu-8", "--axis", "a=wire"), "has no link 'wire'"),
        (("--machine", "cpu-8", "--layout", "mine"), "[unknown-layout-policy]"),
        (("--machine", "cpu-8", "--schedule", "mine"), "mine"),
    ):
        done = shardy("cost", module, *options)
        assert (done.exit_code, done.stdout) == (2, "")
        assert expected in done.stderr
