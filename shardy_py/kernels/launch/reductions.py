"""The launches of reductions: which part of the input a thread, a warp and a block take."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.reductions import CanonicalReduction, ElementBits, RootReductions
from shardy_py.kernels.launch.grid import Launch
from shardy_py.values import frozen

_ROW_STEPS = 16
_MAX_THREADS = 1024
_ROW_THREADS = 256
_STRIP_STEPS = 4
_STRIP_UNIT = 16


@frozen(kw_only=True)
class ReductionPlan:
    """Distribution of a reduction over a grid.

    Args:
        form: The canonical form.
        style: ``multi-row``, ``row``, ``small-column`` or ``column``; ``strip`` where a thread reduces by itself.
        vector: The elements that a thread reads at once.
        threads: The threads of a block.
        blocks: The blocks along the kept dimensions, major first.
        per_row: The threads that share a row (or, for columns, a column's part); the results of a strip.
        rows: The rows of a block; the partial results for each result of a strip.
        warp: The threads of a warp, which exchange values without memory.
    """

    form: CanonicalReduction
    style: str
    vector: int
    threads: int
    blocks: tuple[int, int]
    per_row: int
    rows: int
    warp: int

    def launch(self, groups: int) -> Launch:
        """Return the grid, in which groups of roots run side by side along z."""
        return Launch((self.blocks[0] * self.blocks[1], 1, groups), (self.threads, 1, 1), self.vector)

    def is_for(self, launch: Launch) -> bool:
        """Return whether a grid is that of the plan."""
        return self.launch(launch.blocks[2]) == launch


def plan_reduction(reductions: RootReductions, device: DeviceSpec, launch: Launch | None = None) -> ReductionPlan:
    """Return how a reduction is spread over a grid.

    Args:
        reductions: The reductions of the fusion.
        device: The device.
        launch: The grid, if it may be another one than the emitter's.
    """
    form, bits = reductions.canonical, reductions.bits
    if device.threads_per_warp == 1:
        plan = _strip(reductions, device)
    elif not form.is_row:
        plan = (_small_column if 32 % form.dims[2] == 0 else _column)(form, bits, device)
    else:
        plan = _multi_row(form, bits, device) or _row(form, bits, device)
    if launch is None or plan.is_for(launch):
        return plan
    return next(other for other in other_plans(plan, bits, device) if other.is_for(launch))


def other_plans(plan: ReductionPlan, bits: ElementBits, device: DeviceSpec) -> Iterator[ReductionPlan]:
    """Yield plans of the same style with other vectors, and with more or fewer threads for a row.

    Args:
        plan: The plan of the emitter.
        bits: The bits of the elements that are read.
        device: The device.
    """
    _, middle, minor = plan.form.dims
    most = 1 if bits.has_complex else max(1, 128 // bits.largest)
    for vector in (item for item in (1, 2, 4, 8) if item <= most and minor % item == 0):
        if plan.style == "row":
            for per_row in (size for size in (32, 64, 128, 256, 512, 1024) if size % plan.warp == 0):
                rows = max(1, min(middle, _ROW_THREADS // per_row))
                longest = _rounded(minor, plan.warp * vector)
                if per_row * rows <= device.threads_per_block and per_row * vector <= longest:
                    yield _with_rows(plan, vector, per_row, rows)
        elif plan.style == "multi-row" and minor // vector <= device.threads_per_warp:
            for threads in (64, 128, 256, 512):
                per_row = minor // vector
                yield _with_rows(plan, vector, per_row, max(1, min(middle, threads // per_row)))
        elif plan.style == "column":
            blocks = (plan.blocks[0], -(-minor // (plan.per_row * vector)))
            yield evolve(plan, vector=vector, blocks=blocks)


def _with_rows(plan: ReductionPlan, vector: int, per_row: int, rows: int) -> ReductionPlan:
    blocks = (-(-plan.form.dims[1] // rows), 1)
    return evolve(plan, vector=vector, threads=per_row * rows, blocks=blocks, per_row=per_row, rows=rows)


def vector_size(minor: int, threads: int, bits: ElementBits) -> int:
    """Return the elements that a thread reads at once along the minor dimension."""
    if minor % 2 or 2 * threads > minor or bits.has_complex or bits.smallest >= 64:
        return 1
    if bits.smallest >= 32 or 4 * threads > minor:
        return 2
    return 4 if minor % 4 == 0 else 2


def _multi_row(form: CanonicalReduction, bits: ElementBits, device: DeviceSpec) -> ReductionPlan | None:
    """Return a plan in which a part of a warp takes a row, or None where rows are too long for that."""
    _, middle, minor = form.dims
    if minor & (minor - 1):
        return None
    vector = min(minor, 64 // bits.smallest or 1)
    if 128 // bits.largest >= 1 and bits.largest >= 32:
        vector = min(vector, max(1, 128 // bits.largest))
    vector = 1 if bits.has_complex and vector > 1 else vector
    while True:
        if minor > device.threads_per_warp * vector:
            return None
        per_row = minor // vector
        rows = min(middle, _ROW_THREADS // per_row)
        blocks = -(-middle // rows)
        if vector == 1 or blocks >= device.cores:
            break
        vector //= 2
    return ReductionPlan(
        form=form,
        style="multi-row",
        vector=vector,
        threads=per_row * rows,
        blocks=(blocks, 1),
        per_row=per_row,
        rows=rows,
        warp=device.threads_per_warp,
    )


def _row(form: CanonicalReduction, bits: ElementBits, device: DeviceSpec) -> ReductionPlan:
    _, middle, minor = form.dims
    per_row = min(_MAX_THREADS, _rounded(-(-minor // _ROW_STEPS), device.threads_per_warp))
    rows = 1 if 2 * per_row > _ROW_THREADS else min(middle, _ROW_THREADS // per_row)
    vector = vector_size(minor, per_row, bits)
    return ReductionPlan(
        form=form,
        style="row",
        vector=vector,
        threads=per_row * rows,
        blocks=(-(-middle // rows), 1),
        per_row=per_row,
        rows=rows,
        warp=device.threads_per_warp,
    )


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step


def _small_column(form: CanonicalReduction, bits: ElementBits, device: DeviceSpec) -> ReductionPlan:
    major, middle, minor = form.dims
    warp = device.threads_per_warp
    vector = vector_size(middle * minor, warp, bits)
    threads = 128
    while vector > 1 and vector * threads // minor > warp:
        vector //= 2
    while threads > 1 and vector * threads // minor > warp:
        threads //= 2
    return ReductionPlan(
        form=form,
        style="small-column",
        vector=vector,
        threads=threads,
        blocks=(major, 1),
        per_row=threads,
        rows=vector * threads // minor,
        warp=warp,
    )


def _column(form: CanonicalReduction, bits: ElementBits, device: DeviceSpec) -> ReductionPlan:
    """Return a plan in which each warp of a block takes rows, and each lane of it columns."""
    major, _, minor = form.dims
    warp = device.threads_per_warp
    warps = min(warp, _MAX_THREADS // warp)
    vector = vector_size(minor, warp, bits)
    return ReductionPlan(
        form=form,
        style="column",
        vector=vector,
        threads=warp * warps,
        blocks=(major, -(-minor // (warp * vector))),
        per_row=warp,
        rows=warps,
        warp=warp,
    )


def _strip(reductions: RootReductions, device: DeviceSpec) -> ReductionPlan:
    """Return a plan in which a thread reduces a row, or a strip of columns, into partial results in its memory.

    There are as many partial results as a core works on at once, where each takes several elements.
    """
    form = reductions.canonical
    major, middle, minor = form.dims
    reduced, kept = (minor, 1) if form.is_row else (middle, minor)
    most = max(1, device.shared_bytes // reductions.accumulator_bytes // _STRIP_UNIT) * _STRIP_UNIT
    strips = -(-kept // most)
    width = -(-kept // strips)
    parts = 1
    while 2 * parts * width <= min(most, device.threads_per_core) and 2 * parts * _STRIP_STEPS <= reduced:
        parts *= 2
    return ReductionPlan(
        form=form,
        style="strip",
        vector=1,
        threads=1,
        blocks=(middle, 1) if form.is_row else (major, strips),
        per_row=width,
        rows=parts,
        warp=1,
    )
