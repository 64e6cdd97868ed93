"""Options of a propagation and the program that it starts from: the one place of their names, defaults and help.

The keywords of `propagate` and of `Session.open`, the flags of the command line and the tables of the reference come
from these values. Nothing heavy is imported here, as the command line reads its flags before it does anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import field

from shardy_py.transforms.upstream import JAXLIB, check_upstream
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.api.given_shardings import InShardings, OutShardings
    from shardy_py.api.propagate import ProgressCallback
    from shardy_py.ir.graph.program import Op, Program
    from shardy_py.plugins import Registry
    from shardy_py.propagation.engine import StageCallback
    from shardy_py.schedule.from_options import OpPriorities, ScheduleLike
    from shardy_py.transforms.snapshots import AfterPass


Like = Literal["jit", "passes"]
LIKES: tuple[str, ...] = get_args(Like)
Strategy = Literal["basic", "aggressive", "op-priority", "user-priority"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)


@frozen(slots=False)
class ProgramInput:
    """A program as a caller gives it, with what it starts from.

    Args:
        module: MLIR text or bytecode (also a portable artifact of StableHLO), HLO text, a path, an ``ir.Module`` of
            jaxlib, a ``Lowered``, ``Traced`` or ``Exported`` of JAX or a serialized ``Exported``, a jitted function
            with ``args``, a ``ModuleOp`` of xDSL, an ``ExportedProgram`` or
            ``GraphModule`` of PyTorch, a ``ModelProto`` of ONNX, the path of an ``.xdsl``, ``.hlo``, ``.pt2`` or
            ``.onnx`` file, a `Program` that was built, or whatever the frontend of a plugin reads. An ``ir.Module`` is
            annotated in place.
        mesh: For a module without a mesh: a `Mesh`, a mapping of axis sizes, or a mesh of JAX.
        in_shardings: Shardings of arguments, by number, name or glob of names (later entries count) or as a flat
            list, each a PartitionSpec, a tuple of axis names, a NamedSharding, placements of DTensor, a
            `TensorSharding` or its text. They replace those the module has.
        out_shardings: Shardings of results, by number, by name (``"result0"``, or as JAX calls them) or as a flat
            list, in the same forms.
        like: What the program is propagated like: ``jit``, as `jax.jit` propagates it, after XLA's conversion to HLO
            and back; or ``passes``, as Shardy's passes propagate the module as it is. By default, ``jit`` for programs
            of JAX (a jitted function, a ``Traced``, ``Lowered`` or ``Exported``, a serialized ``Exported``, HLO text)
            and ``passes`` for everything else.
        sizes: Sizes of dynamic dimensions: by argument and dimension (``{"arg0.0": 64}``, ``{"x.0": 64}``), or for all
            that have none (``{"?": 64}``). Propagation needs none; costs and local programs do.
        args: Example arguments of a jitted function: arrays or `jax.ShapeDtypeStruct`.
        kwargs: Example arguments by keyword.
    """

    module: Any
    mesh: Any = None
    in_shardings: InShardings | None = field(default=None, kw_only=True)
    out_shardings: OutShardings | None = field(default=None, kw_only=True)
    like: Like | None = field(default=None, kw_only=True)
    sizes: Mapping[str, int] | None = field(default=None, kw_only=True)
    args: Sequence[Any] | None = field(default=None, kw_only=True)
    kwargs: Mapping[str, Any] | None = field(default=None, kw_only=True)


@frozen(slots=False, kw_only=True)
class ProgramOptions:
    """Options of everything that propagates a program, once or many times.

    Args:
        strategy: ``basic``, ``aggressive``, ``op-priority`` or ``user-priority``; each includes those before it.
        conservative: Leave out factors that could be sharded unevenly.
        extended_rules: Give rules to ops that the reference leaves without one.
        dedup_functions_fully: Let all calls of a function share its shardings; otherwise each call may have its own,
            and functions are copied where they end up different.
        inline_calls: Put the bodies of functions in the places of their calls first, as XLA does before it propagates.
        keep_uneven_shardings: Keep shardings of arguments and results that do not divide a size, whose last shards are
            padded; otherwise only the axes that divide it stay, with a warning where they were given.
        plugins: More plugins besides the installed ones: modules or objects with hook implementations.
        blocked: Names of installed plugins that are not loaded.
        strict_plugins: Stop at any problem of an installed plugin; otherwise it is a warning.
    """

    strategy: Strategy = "user-priority"
    conservative: bool = False
    extended_rules: bool = False
    dedup_functions_fully: bool = False
    inline_calls: bool = False
    keep_uneven_shardings: bool = False
    plugins: Iterable[object] = ()
    blocked: Iterable[str] = ()
    strict_plugins: bool = False


@frozen(slots=False, kw_only=True)
class Options(ProgramOptions):
    """Options of `propagate`.

    Args:
        schedule: The levels of the op-priority strategy, in place of the default ones: a `Schedule`, the
            ``pathlib.Path`` of a TOML file, or the name of a built-in one.
        op_priorities: Ops that come before all others, in order: names, globs, traits or selectors, or lists of those
            that come together.
        keep_sharding_rules: Leave the rule of each op on it as an attribute.
        strict: Refuse a program with ops that have no rule, or types of dialects that no plugin defines.
        explicit_collectives: Make all communication explicit, as collective ops; otherwise only what a partitioner
            could not find itself.
        local: Make all communication explicit, and the program that each device runs now: its errors come here, and
            not from `Result.local`.
        upstream: Whose behaviour is mirrored where versions of Shardy differ: ``0.10.2`` of jaxlib, or ``head`` of
            2026-08-22.
        verify: Let MLIR verify an ``ir.Module`` as it comes in, and a module that passes of plugins changed or that has
            collectives as it goes out. A compiler that has just verified its module can do without, as with
            ``PassManager.enable_verifier(False)``, and saves a twentieth of a run; text and bytecode are verified as
            they are parsed in any case.
        record_copies: Record which copies of constants are made, for `Result.copies`.
        trace: Record what propagates and what does not, for `Result.trace` and `Result.explain`.
        dump_directory: The folder for the module after every pass, as ``NN.pass-name.mlir``. An ``ir.Module`` that
            is given changes with every one of them, otherwise once, at the end.
        on_pass: Called after every pass with its name and the program.
        on_stage: Called as each stage starts, for a progress display: import, prepare, compile, solve, finish, write.
        on_progress: Called as each stage starts and after each step with how many steps are done, of how many, and
            the stage; the steps are to read the module, each pass, and to write it.
        registry: The definitions of ops; by default those of the installed plugins.
    """

    schedule: ScheduleLike | None = None
    op_priorities: OpPriorities | None = None
    keep_sharding_rules: bool = False
    strict: bool = False
    explicit_collectives: bool = False
    local: bool = False
    upstream: str = field(default=JAXLIB, validator=check_upstream)
    verify: bool = True
    record_copies: bool = False
    trace: bool = False
    dump_directory: str | Path | None = None
    on_pass: AfterPass | None = None
    on_stage: StageCallback | None = None
    on_progress: ProgressCallback | None = None
    registry: Registry | None = None


@frozen(slots=False)
class PropagateArguments(Options, ProgramInput):
    """Arguments of `propagate`."""


@frozen(slots=False)
class SessionArguments(ProgramOptions, ProgramInput):
    """Arguments of `Session.open`.

    Args:
        verify: Let MLIR verify an ``ir.Module`` as it comes in; text and bytecode are verified as they are parsed.
        registry: The definitions of ops; by default those of the installed plugins.
        on_given: Called with the program and its main function before any pass, once all shardings are given.
        keep_names: Keep the names of values for reports, which takes as long again as a third of all the rest.
    """

    verify: bool = field(default=True, kw_only=True)
    registry: Registry | None = field(default=None, kw_only=True)
    on_given: Callable[[Program, Op], None] | None = field(default=None, kw_only=True)
    keep_names: bool = field(default=False, kw_only=True)


@frozen(kw_only=True)
class LocalOptions:
    """Options of local programs.

    Args:
        strict: Refuse ops without a local form; otherwise they run on gathered operands, with a warning.
        per_dim_all_gather: Gather several dimensions with one all-gather each; otherwise with one for all.
        combine_multi_dimension_reduce_scatter: Scatter several dimensions with one reduce-scatter; otherwise with an
            all-reduce and a slice. `optimize` does so, too, as that sends half as much.
        optimize: Send the fewest bytes: equal things once, early or late, before loops or after them. Otherwise each
            op communicates as propagation left it.
        reorder_sums: Add partial results before they are combined, which changes how sums are rounded.
        pad_dynamic_sizes: Run arrays whose dynamic sizes have no equal parts, with padding in the last parts; otherwise
            they are errors.
    """

    strict: bool = False
    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    optimize: bool = True
    reorder_sums: bool = True
    pad_dynamic_sizes: bool = False
