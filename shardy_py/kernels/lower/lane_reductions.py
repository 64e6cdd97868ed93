"""Reductions over the lanes of warps on the host, as one loop over their steps.

A device has an instruction per step, and so has a kernel. On the host each step is a loop over lanes, which LLVM takes
its time for: it compiles one of them, around which another loop halves the distance between lanes. The values are
combined in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.values import frozen

_FEW_BITS = frozenset(f"i{bits}" for bits in range(1, 8))


@frozen
class LaneReduction:
    """A reduction over the lanes of the warps of a block.

    Args:
        combiner: The name of the function that combines the values of two lanes.
        types: The types of the values of a lane.
        sources: The arrays that hold the values of all threads.
        scratch: As many other arrays: each step reads from the ones and writes to the others.
        distance: The distance between lanes in the first step.
        warp: The lanes of a warp.
        warps: How many warps anyone uses the results of.
        lanes: How many lanes of these combine values that anyone uses.
        threads: The threads of a block.
    """

    combiner: str
    types: tuple[str, ...]
    sources: tuple[str, ...]
    scratch: tuple[str, ...]
    distance: int
    warp: int
    warps: int
    lanes: int
    threads: int

    @property
    def results(self) -> tuple[str, ...]:
        """The arrays that hold the results."""
        return self.scratch if self.distance.bit_length() % 2 else self.sources

    @property
    def always_exists(self) -> bool:
        """True if each lane that combines values has another one at each distance."""
        last = (self.warps - 1) * self.warp + self.lanes - 1
        return self.lanes + self.distance <= self.warp and last + self.distance < self.threads


def word_type(type_: str) -> str:
    """Return the type of a value in memory: integers of a few bits take a byte."""
    return "i8" if type_ in _FEW_BITS else type_


def reduction_text(reduction: LaneReduction, prefix: str, before: str, after: str, loop: int, group: int) -> list[str]:
    """Return the loops over steps, warps and lanes.

    Args:
        reduction: The reduction.
        prefix: What the names of values and blocks begin with.
        before: The block that leads to the first one.
        after: The block behind the loops.
        loop: The number of the metadata of the loop over lanes.
        group: That of the accesses to memory, of which no step of this loop depends on another.
    """
    steps, warps, lanes = (f"{prefix}.{name}" for name in ("steps", "warps", "lanes"))
    lines = [f"{steps}.head:"]
    lines.append(f"  %{steps} = phi i32 [ {reduction.distance}, %{before} ], [ %{steps}.half, %{steps}.next ]")
    for number, (source, scratch) in enumerate(zip(reduction.sources, reduction.scratch, strict=True)):
        for name, first, other in (("from", source, "to"), ("to", scratch, "from")):
            from_end = f"[ %{steps}.{other}{number}, %{steps}.next ]"
            lines.append(f"  %{steps}.{name}{number} = phi ptr [ {first}, %{before} ], {from_end}")
    outer = [(warps, reduction.warps)] if reduction.warps > 1 else []
    if outer:
        lines += [f"  br label %{warps}.head", f"{warps}.head:"]
        lines += [f"  %{warps} = phi i32 [ 0, %{steps}.head ], [ %{warps}.more, %{warps}.next ]"]
    begin = f"mul nuw nsw i32 %{warps}, {reduction.warp}" if outer else "add i32 0, 0"
    lines += [f"  %{warps}.begin = {begin}", f"  br label %{lanes}.head", f"{lanes}.head:"]
    around = warps if outer else steps
    lines += [f"  %{lanes} = phi i32 [ 0, %{around}.head ], [ %{lanes}.more, %{lanes}.head ]"]
    lines += _step(reduction, prefix, group)
    metadata = f", !llvm.loop !{loop}"
    for (name, count), behind in zip(
        [(lanes, reduction.lanes), *outer], [f"{around}.next", f"{steps}.next"], strict=False
    ):
        lines += [] if name == lanes else [f"{name}.next:"]
        lines.append(f"  %{name}.more = add nuw nsw i32 %{name}, 1")
        lines.append(f"  %{name}.again = icmp ult i32 %{name}.more, {count}")
        lines.append(f"  br i1 %{name}.again, label %{name}.head, label %{behind}{metadata}")
        metadata = ""
    lines += [f"{steps}.next:", f"  %{steps}.half = lshr i32 %{steps}, 1"]
    lines.append(f"  %{steps}.again = icmp ne i32 %{steps}.half, 0")
    lines.append(f"  br i1 %{steps}.again, label %{steps}.head, label %{after}")
    return lines


def _step(reduction: LaneReduction, prefix: str, group: int) -> list[str]:
    """Return what a lane does in a step: it combines its values with those of another lane, if there is one."""
    own, distance = f"{prefix}.own", f"%{prefix}.steps"
    lines = [f"  %{own} = add nuw nsw i32 %{prefix}.warps.begin, %{prefix}.lanes"]
    lines.append(f"  %{prefix}.other = add nuw nsw i32 %{own}, {distance}")
    if not reduction.always_exists:
        lines += [
            f"  %{prefix}.lane = add nuw nsw i32 %{prefix}.lanes, {distance}",
            f"  %{prefix}.in.warp = icmp ult i32 %{prefix}.lane, {reduction.warp}",
            f"  %{prefix}.in.block = icmp ult i32 %{prefix}.other, {reduction.threads}",
            f"  %{prefix}.exists = and i1 %{prefix}.in.warp, %{prefix}.in.block",
        ]
    arguments: dict[str, list[str]] = {"own": [], "other": []}
    for number, type_ in enumerate(reduction.types):
        for name, loaded in arguments.items():
            value = f"%{prefix}.{name}.value{number}"
            lines += _load(value, type_, f"%{prefix}.steps.from{number}", f"%{prefix}.{name}", group)
            loaded.append(value)
        if not reduction.always_exists:
            (*_, mine), (*_, theirs) = arguments.values()
            lines.append(f"  {theirs}.or.own = select i1 %{prefix}.exists, {type_} {theirs}, {type_} {mine}")
            arguments["other"][-1] = f"{theirs}.or.own"
    results = [f"%{prefix}.result{number}" for number in range(len(reduction.types))]
    passed = ", ".join(
        f"{type_} {value}"
        for values in arguments.values()
        for type_, value in zip(reduction.types, values, strict=True)
    )
    is_single = len(results) == 1
    returned = reduction.types[0] if is_single else "{" + ", ".join(reduction.types) + "}"
    struct = results[0] if is_single else f"%{prefix}.results"
    lines.append(f"  {struct} = call {returned} @{reduction.combiner}({passed})")
    if not is_single:
        lines += [f"  {result} = extractvalue {returned} {struct}, {n}" for n, result in enumerate(results)]
    for number, (result, type_) in enumerate(zip(results, reduction.types, strict=True)):
        lines += _store(result, type_, f"%{prefix}.steps.to{number}", f"%{own}", group)
    return lines


def _load(name: str, type_: str, array: str, index: str, group: int) -> Iterator[str]:
    word = word_type(type_)
    is_narrow = word != type_
    yield f"  {name}.place = getelementptr inbounds {word}, ptr {array}, i32 {index}"
    loaded = f"{name}.word" if is_narrow else name
    yield f"  {loaded} = load {word}, ptr {name}.place, !llvm.access.group !{group}"
    if is_narrow:
        yield f"  {name} = trunc {word} {loaded} to {type_}"


def _store(value: str, type_: str, array: str, index: str, group: int) -> Iterator[str]:
    word = word_type(type_)
    stored = value
    if word != type_:
        stored = f"{value}.word"
        yield f"  {stored} = zext {type_} {value} to {word}"
    yield f"  {value}.place = getelementptr inbounds {word}, ptr {array}, i32 {index}"
    yield f"  store {word} {stored}, ptr {value}.place, !llvm.access.group !{group}"
