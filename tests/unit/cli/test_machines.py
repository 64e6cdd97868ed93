"""``shardy machines``."""

import json

import pytest

from shardy_py.cost.machines.toml import get_machine, machine_names

MINE = """
name = "mine"

[device]
memory_bytes = 16e9
memory_bandwidth = 800e9

[device.flops]
default = 50e12

[[link]]
name = "node"
size = 2
topology = "all-to-all"
bandwidth = 25e9
"""


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_all_machines_that_come_along_are_listed(shardy):
    """Each name that a command takes stands whole in a table of 80 columns."""
    done = shardy("machines")
    assert done.exit_code == 0
    assert all(any(line.split()[:1] == [name] for line in done.stdout.splitlines()) for name in machine_names())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_files_are_shown_in_their_place(shardy, tmp_path):
    """A machine of a file has its devices, memory, peak and links."""
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    text = " ".join(shardy("machines", str(file)).stdout.split())
    for expected in ("mine.toml", "16 GB", "800 G", "50 T", "node 2 all-to-all", "25 GB/s"):
        assert expected in text


def test_json_has_every_number(shardy):
    """The data are those of the values."""
    data = json.loads(shardy("machines", "--json").stdout)
    assert set(data) == set(machine_names())
    assert data["cpu-8"]["memory_bytes"] == get_machine("cpu-8").memory_bytes
    assert [link["size"] for link in data["tpu-v5e-4x4"]["links"]] == [4, 4]


def test_options_of_a_calibration_need_one(shardy, tmp_path):
    """Without ``calibrate`` there is nothing to write."""
    done = shardy("machines", "-o", str(tmp_path / "mine.toml"))
    assert done.exit_code == 2
    assert "shardy machines calibrate" in done.stderr


@pytest.mark.slow
def test_a_calibration_is_a_machine_that_prices_programs(shardy, tmp_path):
    """The devices of JAX are measured on this host, and the file is one that ``--machine`` takes."""
    pytest.importorskip("jax")
    file = tmp_path / "here.toml"
    assert shardy("machines", "calibrate", "-o", str(file), "--name", "here").exit_code == 0
    machine = get_machine(file)
    assert machine.name == "here"
    assert min(machine.memory_bandwidth, *machine.flops.values()) > 1e6
    assert machine.peak("bf16")[1] == "bf16"
