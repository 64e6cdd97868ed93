"""Bytes that a device sends in collectives, and their times.

On a ring or through a switch they go as in R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH" (2005), section 4: an all-gather of ``n`` devices takes ``n - 1`` steps, in each of
which a device passes on one part; a reduce-scatter is the same backwards; an all-reduce is a reduce-scatter and an
all-gather. Where the links form a closed ring, parts go both ways at once. Along several links a collective runs along
one after the other, where parts are small along the slowest.

How much an all-to-all or a permutation puts on the links of a ring or a line follows from counting what crosses the
middle: of ``n`` parts, each device sends one to every other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod

from shardy_py.cost.machines.placement import LinkPart

Parts = Sequence[LinkPart]


def group_size(parts: Parts) -> int:
    """Return the number of devices on parts of links together."""
    return prod(part.size for part in parts)


def bandwidth(part: LinkPart) -> float:
    """Return the bytes per second that a device passes on while all devices do.

    Both directions of a closed ring count. Devices that stand apart share the links between them with those that stand
    there.
    """
    if part.link.topology == "all-to-all":
        return part.link.bandwidth
    return part.link.bandwidth * (2 if part.is_closed else 1) / part.stride


def all_gather_seconds(parts: Parts, shard_bytes: float) -> float:
    """Return the time until every device has the shards of all."""
    seconds = 0.0
    for part in sorted(parts, key=bandwidth):
        steps = part.size - 1
        seconds += steps * shard_bytes / bandwidth(part) + _latency(part, steps)
        shard_bytes *= part.size
    return seconds


def reduce_scatter_seconds(parts: Parts, shard_bytes: float) -> float:
    """Return the time until every device has its shard of the sum: that of an all-gather backwards."""
    return all_gather_seconds(parts, shard_bytes)


def all_reduce_seconds(parts: Parts, total_bytes: float) -> float:
    """Return the time until every device has the sum: it is scattered, then gathered."""
    return 2 * all_gather_seconds(parts, total_bytes / group_size(parts))


def all_to_all_seconds(parts: Parts, shard_bytes: float) -> float:
    """Return the time until every device has sent an equal part of its shard to each other one."""
    return sum(_all_to_all_along(part, shard_bytes) for part in parts)


def permute_seconds(parts: Parts, shard_bytes: float) -> float:
    """Return the time until every device has the shard of another one, any other one."""
    return sum(_permute_along(part, shard_bytes) for part in parts)


def _all_to_all_along(part: LinkPart, shard_bytes: float) -> float:
    n = part.size
    steps = n // 2 if part.is_closed else n - 1
    if part.link.topology == "all-to-all":
        return (n - 1) / n * shard_bytes / part.link.bandwidth + part.link.latency * steps
    # In one direction of the link in the middle of a line, and of half of that on each link of a ring.
    crossing = (n * n // 4) * shard_bytes / n
    rings = 2 if part.is_closed else 1
    return crossing / rings * part.stride / part.link.bandwidth + part.link.latency * steps * part.stride


def _permute_along(part: LinkPart, shard_bytes: float) -> float:
    if part.link.topology == "all-to-all":
        return shard_bytes / part.link.bandwidth + part.link.latency
    # Where each device sends to any other one, a quarter of all shards cross the middle of a line in one direction,
    # and half of that each link of a ring.
    shards = max(1.0, part.size / (8 if part.is_closed else 4))
    hops = part.size // 2 * part.stride
    return shards * part.stride * shard_bytes / part.link.bandwidth + part.link.latency * hops


def _latency(part: LinkPart, steps: int) -> float:
    if part.link.topology == "all-to-all":
        return part.link.latency * steps
    # Parts that go both ways around a ring meet after half of the steps.
    return part.link.latency * part.stride * (ceil(steps / 2) if part.is_closed else steps)


def _all_gather(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return (n - 1) * before, all_gather_seconds(parts, before)


def _reduce_scatter(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return (n - 1) * after, reduce_scatter_seconds(parts, after)


def _all_reduce(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return -(-2 * (n - 1) * before // n), all_reduce_seconds(parts, before)


def _all_to_all(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return -(-(n - 1) * before // n), all_to_all_seconds(parts, before)


def _permute(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return before, permute_seconds(parts, before)


def _reshard(n: int, before: int, after: int, parts: Parts) -> tuple[int, float]:
    return after, permute_seconds(parts, after)


PRICES: dict[str, Callable[[int, int, int, Parts], tuple[int, float]]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "collective_permute": _permute,
    "collective_broadcast": _permute,
    "reshard": _reshard,
}
"""The bytes that one device sends, and the time, by kind: of n devices, with the bytes before and behind it."""
