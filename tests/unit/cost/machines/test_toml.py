"""Machines as TOML."""

import pytest

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.cost.machines.toml import get_machine, machine_names, parse_machine, read_machine
from shardy_py.errors import OptionError

TEXT = """
name = "two by four"

[device]
memory_bytes = 16e9
memory_bandwidth = 800e9

[device.flops]
bf16 = 200e12
default = 50e12

[[link]]
name = "node"
size = 2
topology = "all-to-all"
bandwidth = 25e9
latency = 5e-6

[[link]]
name = "inside"
size = 4
bandwidth = 50e9
"""


def _problems(text):
    with pytest.raises(OptionError) as caught:
        parse_machine(text, source="m.toml")
    return [item.message for item in caught.value.diagnostics]


def test_a_machine_is_read():
    """Every key is read; a link is a ring without latency where the text does not say."""
    links = (Link("node", 2, 25e9, 5e-6, "all-to-all"), Link("inside", 4, 50e9, 0.0, "ring"))
    expected = Machine("two by four", links, {"bf16": 200e12, "default": 50e12}, 16_000_000_000, 800e9)
    assert parse_machine(TEXT) == expected
    assert expected.num_devices == 8


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_that_comes_along_is_complete(name):
    """All of them are read without complaint, compute with the usual types, and have devices."""
    machine = get_machine(name)
    assert machine.num_devices >= 8
    assert machine.peak("bf16")[0] >= machine.peak("f64")[0] > 0
    assert get_machine(machine) is machine


def test_the_documented_machines_come_along():
    """TPU v5e slices and pods, TPU v5p, one and two NVLink nodes, and a host are there."""
    assert {"tpu-v5e-4x4", "tpu-v5e-pod", "tpu-v5p-4x4x4", "h100-8", "h100-2x8", "cpu-8"} <= set(machine_names())


@pytest.mark.parametrize(
    ("element_type", "key"),
    [
        ("bf16", "bf16"),
        ("f16", "bf16"),
        ("f32", "default"),
        ("i1", "i8"),
        ("ui4", "i8"),
        ("f8E4M3FN", "bf16"),
        ("complex<bf16>", "bf16"),
        ("!toy.t", "default"),
    ],
)
def test_an_unlisted_type_counts_as_the_next_wider_one_of_its_kind(element_type, key):
    """Where no wider type of the kind is listed, the default stands for it."""
    machine = Machine("m", (Link("x", 2, 1.0),), {"bf16": 4.0, "i8": 8.0, "default": 1.0}, 1, 1.0)
    assert machine.peak(element_type) == (machine.flops[key], key)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "two by four"', "", "name is missing"),
        ("size = 2", "size = 2.5", "link 0: size is 2.5, not a number of devices"),
        ("size = 4", "size = 0", "link 1: size is 0, not a number of devices"),
        ("bandwidth = 25e9", "bandwidth = 0", "link 0: bandwidth is 0, not a positive number"),
        ("bandwidth = 25e9", "bandwidth = nan", "link 0: bandwidth is nan, not a positive number"),
        ("bandwidth = 25e9", 'bandwidth = "fast"', "link 0: bandwidth is 'fast', not a positive number"),
        ("bandwidth = 50e9", "", "link 1: bandwidth is missing"),
        ("latency = 5e-6", "latency = -1", "link 0: latency is -1, not a positive number"),
        ('topology = "all-to-all"', 'topology = "star"', "link 0: topology is 'star'"),
        ("latency = 5e-6", "delay = 5e-6", "link 0: unknown key 'delay'"),
        ('name = "inside"', 'name = "node"', "there are two links 'node'"),
        ("memory_bytes = 16e9", "memory_bytes = true", "device: memory_bytes is True, not a positive number"),
        ("bf16 = 200e12", "bfloat = 200e12", "device.flops: 'bfloat' is not an element type"),
        ("default = 50e12", "", "device.flops: default is missing"),
        ("[device.flops]", "[flops]", "unknown key 'flops'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old, new, message):
    """Each mistake gives a diagnostic that says where it stands."""
    assert message in _problems(TEXT.replace(old, new, 1))


def test_all_problems_are_listed():
    """Two mistakes give two diagnostics."""
    text = TEXT.replace("size = 2", "size = -1").replace("bf16 = 200e12", "bf16 = 0")
    assert len(_problems(text)) == 2


def test_a_text_without_links_is_refused():
    """A machine has at least one link."""
    assert _problems(TEXT.split("[[link]]")[0]) == ["there are no links"]


def test_what_is_no_toml_is_refused():
    """The error of the TOML parser is passed on."""
    (message,) = _problems("name = ")
    assert message.startswith("this is not TOML: ")


def test_a_missing_file_is_refused(tmp_path):
    """The path is the place of the error."""
    with pytest.raises(OptionError) as caught:
        read_machine(tmp_path / "none.toml")
    assert caught.value.diagnostics[0].location == str(tmp_path / "none.toml")


def test_a_file_is_read_by_its_name(tmp_path):
    """A path, or a text that ends in .toml, names a file."""
    path = tmp_path / "m.toml"
    path.write_text(TEXT)
    assert get_machine(path) == get_machine(str(path)) == parse_machine(TEXT)


def test_a_file_with_another_ending_is_named(tmp_path):
    """A file whose name is taken for that of a machine gets a hint how to call it."""
    path = tmp_path / "mine"
    path.write_text("", encoding="utf-8")
    with pytest.raises(OptionError, match=r"does not end in \.toml") as caught:
        get_machine(str(path))
    assert caught.value.diagnostics[0].hint == "rename it to mine.toml"


def test_an_unknown_name_gives_the_closest_ones():
    """The hint names machines that are called alike."""
    with pytest.raises(OptionError) as caught:
        get_machine("tpu-v5e")
    assert caught.value.diagnostics[0].code == "unknown-machine"
    assert "tpu-v5e-4x4" in caught.value.diagnostics[0].hint
