"""Machines from measured speeds."""

from __future__ import annotations

import pytest

from shardy_py.cost.machines.calibrate import calibrated_machine, machine_toml
from shardy_py.cost.machines.toml import parse_machine
from shardy_py.jax.measured_devices import DeviceSpeeds

FLOPS = {"f32": 3e12, "bf16": 6e12}


def test_measured_speeds_are_a_machine_that_its_toml_gives_back() -> None:
    """Types that were not measured count as the slowest; the profile is that of the platform."""
    machine = calibrated_machine(DeviceSpeeds("gpu", 'a "fast" one', 4, 1 << 34, FLOPS, 2e12, 3e11, 5e-6))
    assert parse_machine(machine_toml(machine)) == machine
    assert (machine.profile, machine.num_devices, machine.peak("i32")) == ("xla-gpu", 4, (3e12, "default"))


@pytest.mark.parametrize(("platform", "profile"), [("cpu", "xla-cpu"), ("tpu", "none")])
def test_one_device_has_a_link_that_nothing_is_sent_over(platform, profile) -> None:
    """It can be priced, too; a platform whose compiler is not open has no profile."""
    machine = calibrated_machine(DeviceSpeeds(platform, "one", 1, 1 << 30, FLOPS, 2e10), name="mine")
    assert (machine.name, machine.profile, machine.num_devices) == ("mine", profile, 1)
    assert parse_machine(machine_toml(machine)) == machine
