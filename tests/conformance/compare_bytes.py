"""The bytes that a local program moves, and those of XLA's own partitioner on the same shardings, as a process.

It prints two numbers: of the local program, and of XLA.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shardy_py.targets.jax.host import use_devices
from tests.conformance.moved_bytes import moved_bytes


def main(path: str) -> None:
    """Print the two numbers for the program in a file."""
    use_devices(16)
    import jax
    import numpy
    from jaxlib import xla_client

    import shardy_py as sdy
    from shardy_py.targets.local.replicas import as_replicas

    text = Path(path).read_text()
    local = sdy.propagate(text, explicit_collectives=True).local()
    devices = jax.devices()[: local.device_count]
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = len(devices)
    ids = numpy.array([[device.id] for device in devices], numpy.int32)
    options.device_assignment = build.device_assignment = xla_client.DeviceAssignment.create(ids)
    own = devices[0].client.compile_and_load(as_replicas(local.module), xla_client.DeviceList(tuple(devices)), options)
    xla = sdy.propagate(text).to_jax().executable
    print(moved_bytes(own.get_hlo_text()), moved_bytes(xla.get_hlo_text()))
    if len(sys.argv) > 2:
        print(own.get_hlo_text(), "=" * 40, xla.get_hlo_text(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
