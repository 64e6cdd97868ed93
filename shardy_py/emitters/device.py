"""Device specs: what launches and lowering have to know of a device."""

from __future__ import annotations

from attrs import field, frozen, validators

_POSITIVE = validators.and_(validators.instance_of(int), validators.gt(0))


@frozen(kw_only=True)
class DeviceSpec:
    """A device with many cores that each run many threads.

    Args:
        name: Its name.
        cores: The number of cores (streaming multiprocessors).
        threads_per_core: The threads that one core keeps at once.
        threads_per_warp: The threads that run in lockstep.
        threads_per_block: The most threads of a block.
        shared_bytes: The shared memory of a block, in bytes.
        blocks_x: The most blocks along x.
        capability: The compute capability as PTX targets name it: 90 for ``sm_90``.
    """

    name: str
    cores: int = field(validator=_POSITIVE)
    threads_per_core: int = field(default=2048, validator=_POSITIVE)
    threads_per_warp: int = field(default=32, validator=_POSITIVE)
    threads_per_block: int = field(default=1024, validator=_POSITIVE)
    shared_bytes: int = field(default=48 * 1024, validator=_POSITIVE)
    blocks_x: int = field(default=2**31 - 1, validator=_POSITIVE)
    capability: int = field(default=90, validator=_POSITIVE)

    @property
    def threads(self) -> int:
        """The threads that the whole device keeps at once."""
        return self.cores * self.threads_per_core


H100 = DeviceSpec(name="h100", cores=132)
