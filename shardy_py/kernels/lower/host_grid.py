"""The grid of a kernel on the host: a loop over blocks around, for each phase, loops over the threads of a block."""

from __future__ import annotations

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.buffer_table import TABLE, takes_table
from shardy_py.kernels.lower.host_phases import ID_ARGUMENTS, HostPhases
from shardy_py.kernels.lower.lane_reductions import reduction_text
from shardy_py.kernels.lower.phases import DONE

GRID = "run_grid"
_ALIGNMENT = 64
# LLVM makes vectors of loops, and would not find this one if it unrolled it first.
_STAYS_LOOP = '!1 = !{!"llvm.loop.unroll.disable"}'
_STAYS_SCALAR = '{} = !{{!"llvm.loop.vectorize.enable", i1 false}}'
_FIRST_LOOP = 2
# LLVM halves the vectors of some processors: slower for sums, by lanes or one thread, faster for tiles of transposes.
_WHOLE_VECTORS = '"prefer-vector-width"="512" '


def grid_text(phases: HostPhases, buffers: int, launch: Launch) -> str:
    """Return the function that runs some blocks of a kernel; it gives 1 if threads of a block part at a barrier.

    Args:
        phases: The phases of the kernel.
        buffers: The number of its buffers.
        launch: The grid.
    """
    width = _WHOLE_VECTORS if phases.exchanges or phases.threads == 1 else ""
    lines = [f"define i32 @{GRID}(ptr %buffers, i64 %first, i64 %last) nounwind {width}{{", "entry:"]
    for item in phases.storage:
        lines.append(f"  {item.name} = alloca [{item.count} x {item.type}], align {_ALIGNMENT}")
    # Lanes that nobody uses the values of combine what others have not written.
    combined = {name for item in phases.reductions.values() for name in (*item.sources, *item.scratch)}
    for item in phases.storage:
        if item.name in combined:
            size = f"ptrtoint (ptr getelementptr ({item.type}, ptr null, i64 {item.count}) to i64)"
            lines.append(f"  call void @llvm.memset.p0.i64(ptr {item.name}, i8 0, i64 {size}, i1 false)")
    lines += [f"  %{_name(number)}.known = alloca i32" for number, exits in enumerate(phases.exits) if len(exits) > 1]
    lines += [f"  %{_name(number)}.rounds = alloca i32" for number in sorted(phases.counting)]
    if phases.parting:
        lines += [f"  %left = alloca [{phases.threads} x i8]", "  %parted = alloca i8"]
    for number in range(0 if takes_table(buffers) else buffers):
        lines.append(f"  %place{number} = getelementptr ptr, ptr %buffers, i64 {number}")
        lines.append(f"  %buffer{number} = load ptr, ptr %place{number}")
    lines += ["  br label %blocks", "blocks:"]
    lines += ["  %block = phi i64 [ %first, %entry ], [ %block.next, %blocks.next ]"]
    lines += ["  %block.more = icmp slt i64 %block, %last", "  br i1 %block.more, label %block.begin, label %done"]
    x, y, _ = launch.blocks
    lines += ["block.begin:", f"  %block.row = udiv i64 %block, {x}"]
    for axis, text in (("x", f"urem i64 %block, {x}"), ("y", f"urem i64 %block.row, {y}")):
        lines.append(f"  %block.wide.{axis} = {text}")
    lines.append(f"  %block.wide.z = udiv i64 %block.row, {y}")
    lines += [f"  %block.{axis} = trunc nuw i64 %block.wide.{axis} to i32" for axis in "xyz"]
    if phases.parting:
        # LLVM makes a store of each element of an array of up to 1024 that is stored as a whole.
        lines.append(f"  call void @llvm.memset.p0.i64(ptr %left, i8 0, i64 {phases.threads}, i1 false)")
        lines.append("  store i8 0, ptr %parted")
    lines += [f"  store i32 0, ptr %{_name(number)}.rounds" for number in sorted(phases.counting)]
    lines.append(f"  br label %{_name(0)}")
    for number in range(len(phases.names)):
        lines += _phase(phases, number, buffers, launch)
    lines += ["blocks.next:", "  %block.next = add nsw i64 %block, 1", "  br label %blocks"]
    lines += ["apart:", "  ret i32 1", "done:", "  ret i32 0", "}", _STAYS_LOOP]
    loops = [_FIRST_LOOP + number for number in sorted(phases.straight)]
    scalar = f"!{_FIRST_LOOP + len(phases.names)}"
    lines += [_STAYS_SCALAR.format(scalar)]
    lines += [
        f"!{loop} = distinct !{{!{loop}, {scalar if loop - _FIRST_LOOP in phases.scalar else '!1'}}}" for loop in loops
    ]
    lines += _metadata_of_reductions(phases)
    return "\n".join(lines) + "\n"


def _metadata_of_reductions(phases: HostPhases) -> list[str]:
    """Return the metadata of the loops over lanes that combine values: no lane reads what another one writes."""
    group = _group(phases)
    lines = [f"!{group} = distinct !{{}}", f'!{group + 1} = !{{!"llvm.loop.parallel_accesses", !{group}}}']
    for number in phases.reductions:
        lines.append(f"!{group + 2 + number} = distinct !{{!{group + 2 + number}, !1, !{group + 1}}}")
    return lines if phases.reductions else []


def _group(phases: HostPhases) -> int:
    """Return the number of the metadata of accesses by lanes that combine values; that of their loops follows."""
    return _FIRST_LOOP + len(phases.names) + 1


def _name(number: int) -> str:
    return "blocks.next" if number == DONE else f"phase{number}"


def _phase(phases: HostPhases, number: int, buffers: int, launch: Launch) -> list[str]:
    """Return the loops over the threads of a block, along x innermost and in strips, and what follows them."""
    prefix, exits = _name(number), phases.exits[number]
    lines = [f"{prefix}:"]
    if number in phases.copies:
        return [*lines, f"  br label %{_name(exits[0])}"]
    if number in phases.guarded & phases.barriers:
        lines += [
            f"  %{prefix}.parted = load i8, ptr %parted",
            f"  %{prefix}.is.parted = icmp ne i8 %{prefix}.parted, 0",
            f"  br i1 %{prefix}.is.parted, label %apart, label %{prefix}.begin",
            f"{prefix}.begin:",
        ]
    start = f"{prefix}.begin" if number in phases.guarded & phases.barriers else prefix
    if number in phases.reductions:
        before, start, group = start, f"{prefix}.reduced", _group(phases)
        lines.append(f"  br label %{prefix}.reduce.steps.head")
        reduction = phases.reductions[number]
        lines += reduction_text(reduction, f"{prefix}.reduce", before, start, group + 2 + number, group)
        lines.append(f"{start}:")
    if number in phases.parting:
        lines.append(f"  store i32 {DONE}, ptr %{prefix}.known")
    if number in phases.counting:
        lines += [
            f"  %{prefix}.round = load i32, ptr %{prefix}.rounds",
            f"  %{prefix}.round.next = add nuw nsw i32 %{prefix}.round, 1",
            f"  store i32 %{prefix}.round.next, ptr %{prefix}.rounds",
        ]
    strips, lanes = phases.live[number]
    sizes = {"z": launch.threads[2], "y": launch.threads[1], "strip": strips, "lane": lanes}
    # A loop of one step costs LLVM as much time as another one.
    loops = {axis: size for axis, size in sizes.items() if size > 1}
    next_thread = f"{prefix}.{list(loops)[-1]}.next" if loops else f"{prefix}.end"
    lines += [f"  %{prefix}.{axis} = add i32 0, 0" for axis in sizes if axis not in loops]
    if loops:
        lines.append(f"  br label %{prefix}.{next(iter(loops))}.head")
    else:
        lines += _call(phases, number, buffers, launch, next_thread)
    heads = [start, *(f"{prefix}.{axis}.head" for axis in loops)]
    ends = [f"{prefix}.end", *(f"{prefix}.{axis}.next" for axis in loops)]
    for axis, before, inner in zip(loops, heads, [*heads[2:], ""], strict=False):
        lines += [f"{prefix}.{axis}.head:"]
        lines += [f"  %{prefix}.{axis} = phi i32 [ 0, %{before} ], [ %{prefix}.{axis}.more, %{prefix}.{axis}.next ]"]
        lines += [f"  br label %{inner}"] if inner else _call(phases, number, buffers, launch, next_thread)
    for (axis, size), after in zip(loops.items(), ends, strict=False):
        lines += [
            f"{prefix}.{axis}.next:",
            f"  %{prefix}.{axis}.more = add nuw nsw i32 %{prefix}.{axis}, 1",
            f"  %{prefix}.{axis}.again = icmp ult i32 %{prefix}.{axis}.more, {size}",
            f"  br i1 %{prefix}.{axis}.again, label %{prefix}.{axis}.head, label %{after}"
            + (f", !llvm.loop !{_FIRST_LOOP + number}" if axis == "lane" and number in phases.straight else ""),
        ]
    lines.append(f"{prefix}.end:")
    if len(exits) == 1:
        return [*lines, f"  br label %{_name(exits[0])}"]
    cases = " ".join(f"i32 {value}, label %{_name(value)}" for value in exits[1:])
    lines.append(f"  %{prefix}.taken = load i32, ptr %{prefix}.known")
    return [*lines, f"  switch i32 %{prefix}.taken, label %{_name(exits[0])} [{cases}]"]


def _call(phases: HostPhases, number: int, buffers: int, launch: Launch, next_thread: str) -> list[str]:
    """Return the call of a phase for one thread, and the check that all threads take the same exit."""
    prefix = _name(number)
    x, y, _ = launch.threads
    ids = {item: f"%{prefix}.{item[-1]}" if item.startswith("%thread") else item for item in ID_ARGUMENTS}
    pointers = [TABLE] if takes_table(buffers) else [f"%buffer{place}" for place in range(buffers)]
    arguments = [f"ptr {pointer}" for pointer in pointers] + [f"i32 {ids[item]}" for item in ID_ARGUMENTS]
    known = ("thread", "strip", "lane", *(["round"] if number in phases.counting else []))
    arguments += [f"i32 %{prefix}.{item}" for item in known]
    arguments += [f"ptr {item.name}" for item in phases.storage]
    lines = [
        f"  %{prefix}.strip.begin = mul nuw nsw i32 %{prefix}.strip, {phases.widths[number]}",
        f"  %{prefix}.x = add nuw nsw i32 %{prefix}.strip.begin, %{prefix}.lane",
        f"  %{prefix}.row = mul nuw nsw i32 %{prefix}.z, {y}",
        f"  %{prefix}.line = add nuw nsw i32 %{prefix}.row, %{prefix}.y",
        f"  %{prefix}.before = mul nuw nsw i32 %{prefix}.line, {x}",
        f"  %{prefix}.thread = add nuw nsw i32 %{prefix}.before, %{prefix}.x",
    ]
    if number in phases.guarded or number in phases.parting:
        lines.append(f"  %{prefix}.left = getelementptr i8, ptr %left, i32 %{prefix}.thread")
    if number in phases.guarded:
        lines += [
            f"  %{prefix}.has.left = load i8, ptr %{prefix}.left",
            f"  %{prefix}.is.here = icmp eq i8 %{prefix}.has.left, 0",
            f"  br i1 %{prefix}.is.here, label %{prefix}.run, label %{next_thread}",
            f"{prefix}.run:",
        ]
    lines.append(f"  %{prefix}.exit = call i32 @{phases.names[number]}({', '.join(arguments)})")
    if number in phases.alike and len(phases.exits[number]) > 1:
        lines.append(f"  store i32 %{prefix}.exit, ptr %{prefix}.known")
    if number in phases.alike or len(phases.exits[number]) == 1:
        return [*lines, f"  br label %{next_thread}"]
    return [*lines, *(_part(prefix, next_thread) if number in phases.parting else _agree(prefix, next_thread))]


def _agree(prefix: str, next_thread: str) -> list[str]:
    """Return the check that a thread takes the same exit of a phase as the first thread."""
    return [
        f"  %{prefix}.is.first = icmp eq i32 %{prefix}.thread, 0",
        f"  %{prefix}.before.exit = load i32, ptr %{prefix}.known",
        f"  %{prefix}.first = select i1 %{prefix}.is.first, i32 %{prefix}.exit, i32 %{prefix}.before.exit",
        f"  store i32 %{prefix}.first, ptr %{prefix}.known",
        f"  %{prefix}.same = icmp eq i32 %{prefix}.exit, %{prefix}.first",
        f"  br i1 %{prefix}.same, label %{next_thread}, label %apart",
    ]


def _part(prefix: str, next_thread: str) -> list[str]:
    """Return the code that records a finished thread, and the check that all others take the same exit."""
    return [
        f"  %{prefix}.is.done = icmp eq i32 %{prefix}.exit, {DONE}",
        f"  br i1 %{prefix}.is.done, label %{prefix}.leave, label %{prefix}.stay",
        f"{prefix}.leave:",
        f"  store i8 1, ptr %{prefix}.left",
        "  store i8 1, ptr %parted",
        f"  br label %{next_thread}",
        f"{prefix}.stay:",
        f"  %{prefix}.before.exit = load i32, ptr %{prefix}.known",
        f"  %{prefix}.is.first = icmp eq i32 %{prefix}.before.exit, {DONE}",
        f"  %{prefix}.first = select i1 %{prefix}.is.first, i32 %{prefix}.exit, i32 %{prefix}.before.exit",
        f"  store i32 %{prefix}.first, ptr %{prefix}.known",
        f"  %{prefix}.same = icmp eq i32 %{prefix}.exit, %{prefix}.first",
        f"  br i1 %{prefix}.same, label %{next_thread}, label %apart",
    ]
