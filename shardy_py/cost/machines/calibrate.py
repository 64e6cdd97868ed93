"""Calibration: the machine of the devices at hand, from kernels that were measured on them."""

from __future__ import annotations

import json

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.cost.machines.profile import NO_PROFILE, PROFILES
from shardy_py.jax.measured_devices import DeviceSpeeds


def calibrated_machine(speeds: DeviceSpeeds, *, name: str = "") -> Machine:
    """Return the machine with measured speeds.

    Types that were not measured count as the slowest that was. All devices are one link, into a switch; with one device
    it is as fast as the memory, as nothing is sent over it.

    Args:
        speeds: The speeds.
        name: The name of the machine; by default the number and the kind of its devices.
    """
    profiles = {item.name for item in PROFILES}
    profile = f"xla-{speeds.platform}"
    link = Link(
        "device",
        speeds.count,
        speeds.link_bandwidth or speeds.memory_bandwidth,
        speeds.link_latency or 0.0,
        "all-to-all",
    )
    return Machine(
        name or f"{speeds.count} {speeds.kind}, measured",
        (link,),
        {**speeds.flops, "default": min(speeds.flops.values())},
        speeds.memory_bytes,
        speeds.memory_bandwidth,
        profile if profile in profiles else NO_PROFILE.name,
    )


def machine_toml(machine: Machine) -> str:
    """Return a machine as TOML, which `parse_machine` reads; rates have four digits."""
    lines = [
        f"name = {json.dumps(machine.name, ensure_ascii=False)}",
        f"profile = {json.dumps(machine.profile)}",
        "",
        "[device]",
        f"memory_bytes = {machine.memory_bytes}",
        f"memory_bandwidth = {machine.memory_bandwidth:.3e}",
        "",
        "[device.flops]",
        *(f"{json.dumps(name)} = {flops:.3e}" for name, flops in machine.flops.items()),
    ]
    for link in machine.links:
        lines += [
            "",
            "[[link]]",
            f"name = {json.dumps(link.name)}",
            f"size = {link.size}",
            f"topology = {json.dumps(link.topology)}",
            f"bandwidth = {link.bandwidth:.3e}",
            f"latency = {link.latency:.3e}",
        ]
    return "\n".join([*lines, ""])
