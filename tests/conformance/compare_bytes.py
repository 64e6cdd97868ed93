"""The bytes that local programs move, and those of XLA's own partitioner on the same shardings, as a process.

Each line of its input is the path of a program; each line of its output has two numbers as JSON, of the local program
and of XLA, or null where either does not take the program.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shardy_py.jax.host import use_devices
from tests.conformance.moved_bytes import moved_bytes


def compare(path: str) -> tuple[float, float]:
    """Return the two numbers for the program in a file."""
    import jax
    import numpy
    from jaxlib import xla_client

    import shardy_py as sdy
    from shardy_py.jax.local.replicas import as_replicas

    text = Path(path).read_text()
    local = sdy.propagate(text, explicit_collectives=True).local()
    devices = jax.devices()[: local.device_count]
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = len(devices)
    ids = numpy.array([[device.id] for device in devices], numpy.int32)
    options.device_assignment = build.device_assignment = xla_client.DeviceAssignment.create(ids)
    local_executable = devices[0].client.compile_and_load(
        as_replicas(local.module), xla_client.DeviceList(tuple(devices)), options
    )
    xla = sdy.propagate(text).to_jax(partitioner="xla", warnings=[]).executable
    return moved_bytes(local_executable.get_hlo_text()), moved_bytes(xla.get_hlo_text())


def main() -> None:
    """Answer each line."""
    use_devices(16)
    for line in sys.stdin:
        try:
            actual = compare(line.strip())
        except Exception as error:
            print(error, file=sys.stderr)
            actual = None
        print(json.dumps(actual), flush=True)


if __name__ == "__main__":
    main()
