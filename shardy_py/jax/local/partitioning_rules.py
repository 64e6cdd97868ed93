"""Ops with ``custom_partitioning`` of JAX: the function of the user that says how they are partitioned is called here.

XLA calls it while it partitions. Here the op becomes a call of a function with a manual computation: what the user's
function returns for one device.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.graph.op_names import CALL, FUNCTION, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.graph.symbols import set_callee
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.prepare.remove_size_one_axes import RemoveSizeOneAxesPass
from shardy_py.transforms.run import run_on_attributes
from shardy_py.values import define

_TARGET = "CustomSPMDPartitioning"


def call_partitioning_rules(program: Program, semantics: OpSemantics) -> Program:
    """Return a program whose ops with ``custom_partitioning`` are calls of what each device runs.

    An op of a module that another process wrote stays as it is.

    Args:
        program: A propagated program, with shardings in the attributes of its ops; it changes.
        semantics: What is known about ops.

    Raises:
        UnsupportedError: a user's function fails.
    """
    partitioned = [
        (op, information)
        for op in ops_named(program, "stablehlo.custom_call")
        if op.attributes.get("call_target_name") == _TARGET and (information := _information(op)) is not None
    ]
    if not partitioned:
        return program
    load_shardings(program, semantics)
    pairs = enumerate(partitioned)
    functions = [_Call(program, semantics, *pair, number).replace() for number, pair in pairs]
    store_shardings(program, semantics)
    text = print_module(write_back(program), with_locations=True).rstrip()
    # The functions go to the end of the module, before locations that follow it.
    end = text.rindex("\n}") + 1
    merged = "\n".join((text[:end], *functions, text[end:]))
    return import_module(parse_module(merged), name=program.origin.name)


def _information(op: Op) -> Any:
    """Return what JAX keeps of an op while the program lives that it was lowered for; None where it is gone."""
    from jax._src import custom_partitioning

    known = getattr(custom_partitioning, "_sharding_callbacks", {})
    return known.get(str(op.attributes.get("backend_config")).strip('"').encode())


@define
class _Call:
    """An op that becomes a call of the function for its shards."""

    program: Program
    semantics: OpSemantics
    op: Op
    information: Any
    number: int

    def replace(self) -> str:
        """Put a call in the place of the op, and return the text of the functions that it needs."""
        import jax

        information = self.information
        whole_dims = self._whole_dims()
        arguments = [self._shape(value, dims) for value, dims in zip(self.op.operands, whole_dims, strict=False)]
        results = [
            self._shape(value, dims) for value, dims in zip(self.op.results, whole_dims[len(arguments) :], strict=True)
        ]
        try:
            mesh, function, result_shardings, argument_shardings = information.partition(
                *information.static_args,
                information.mesh,
                jax.tree.unflatten(information.in_tree, arguments),
                jax.tree.unflatten(information.out_tree, results),
            )
            ins = _flat(argument_shardings, information.in_tree)
            outs = _flat(result_shardings, information.out_tree)
            text = self._lower(mesh, function, ins, outs, arguments)
        except Exception as error:  # the user's function raises what it likes
            raise self._failed(describe_error(error)) from error
        name = f"custom_partitioning_{self.number}"
        self._put_call(name, ins, outs)
        return self._functions(text, name)

    def _whole_dims(self) -> list[frozenset[int]]:
        """Return the dimensions of each operand and result that the op's rule wants whole on every device."""
        tensors = (*self.op.operands, *self.op.results)
        rule = self.semantics.get_sharding_rule(self.op)
        if rule is None:
            return [frozenset()] * len(tensors)
        return [
            frozenset(
                dim
                for dim, factors in enumerate(mapping)
                if any(rule.kind(factor) == FactorKind.NEED_REPLICATION for factor in factors)
            )
            for mapping in rule.mappings
        ]

    def _shape(self, value: Value, whole_dims: Collection[int]) -> Any:
        """Return the shape of a value with its sharding; JAX has no parts of axes, which are left out."""
        import jax

        from shardy_py.layout.numpy_arrays import numpy_dtype

        sharding = self.program.sharding(value)
        entries = [
            None if dim in whole_dims else tuple(axis.name for axis in item.axes if axis.sub_axis is None) or None
            for dim, item in enumerate(() if sharding is None else sharding.dim_shardings)
        ]
        entries += [None] * (len(value.shape) - len(entries))
        named = jax.sharding.NamedSharding(self.information.mesh, jax.sharding.PartitionSpec(*entries))
        dtype = numpy_dtype(value.type.element_type if isinstance(value.type, TensorType) else str(value.type))
        return jax.ShapeDtypeStruct(value.shape, dtype, sharding=named)

    def _lower(self, mesh: Any, function: Any, ins: Sequence[Any], outs: Sequence[Any], shapes: Sequence[Any]) -> str:
        """Return the module of the function over all devices, which is a manual computation."""
        import jax

        tree = self.information.in_tree

        def on_device(*shards: Any) -> Any:
            return tuple(jax.tree.leaves(function(*jax.tree.unflatten(tree, shards))))

        mapped = jax.shard_map(
            on_device,
            mesh=mesh,
            in_specs=tuple(item.spec for item in ins),
            out_specs=tuple(item.spec for item in outs),
            check_vma=False,
        )
        plain = [jax.ShapeDtypeStruct(shape.shape, shape.dtype) for shape in shapes]
        with jax.enable_x64(True):
            lowered = jax.jit(mapped, in_shardings=tuple(ins), out_shardings=tuple(outs)).lower(*plain)
        return str(lowered.as_text())

    def _put_call(self, name: str, ins: Sequence[Any], outs: Sequence[Any]) -> None:
        op, program, mesh = self.op, self.program, self._mesh_name()
        assert op.parent is not None
        operands = []
        for value, sharding in zip(op.operands, ins, strict=True):
            reshard = Op(program, RESHARD, [value], [value.type], {})
            program.shardings[reshard.result.id] = _to_tensor_sharding(sharding, len(value.shape), mesh)
            op.parent.insert_before(op, reshard)
            operands.append(reshard.result)
        call = Op(program, CALL, operands, [value.type for value in op.results], {})
        set_callee(call, name)
        op.parent.insert_before(op, call)
        for value, new, sharding in zip(op.results, call.results, outs, strict=True):
            program.shardings[new.id] = _to_tensor_sharding(sharding, len(value.shape), mesh)
            before = program.sharding(value) or TensorSharding.fully_closed(mesh, len(value.shape))
            reshard = Op(program, RESHARD, [new], [value.type], {})
            program.shardings[reshard.result.id] = before
            op.parent.insert_before(op, reshard)
            value.replace_all_uses_with(reshard.result)
        op.erase()

    def _mesh_name(self) -> str:
        """Return the name of the mesh of the program that has the axes of JAX's.

        Raises:
            UnsupportedError: it has none.
        """
        axis_sizes = {name: size for name, size in self.information.mesh.shape.items() if size > 1}
        for name, mesh in self.program.meshes.items():
            if {axis.name: axis.size for axis in mesh.axes if axis.size > 1} == axis_sizes:
                return name
        raise self._failed(f"no mesh of the program has the axes {axis_sizes}")

    def _functions(self, text: str, name: str) -> str:
        """Return the functions of a module with names of their own, over the mesh of the program."""
        from jaxlib.mlir import ir

        part = import_module(parse_module(text))
        run_on_attributes(part, [RemoveSizeOneAxesPass()], PassContext(self.semantics))
        module = write_back(part)
        (mesh,) = part.meshes
        symbols = ir.SymbolTable(module.operation)
        functions = [op for op in module.body.operations if op.operation.name == FUNCTION]
        for function in functions:
            old = ir.StringAttr(function.attributes["sym_name"]).value
            new = name if old == "main" else f"{name}_{old}"
            for other in functions:
                symbols.replace_all_symbol_uses(old, new, other.operation)
            symbols.set_symbol_name(function, new)
            function.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
        return "\n".join(str(function) for function in functions).replace(f"<@{mesh},", f"<@{self._mesh_name()},")

    def _failed(self, reason: str) -> UnsupportedError:
        message = f"the function that partitions it cannot be called: {reason}"
        hint = "its partition=... must return shardings over the mesh that it is given, and a function for the shards"
        return UnsupportedError(Diagnostic("partitioned-by-jax", message, self.op.location, self.op.name, hint))


def _flat(shardings: Any, tree: Any) -> list[Any]:
    import jax

    leaves = jax.tree.leaves(shardings, is_leaf=lambda item: isinstance(item, jax.sharding.Sharding))
    if len(leaves) != tree.num_leaves:
        raise ValueError(f"{len(leaves)} shardings for {tree.num_leaves} arrays")
    return leaves


def _to_tensor_sharding(sharding: Any, rank: int, mesh: str) -> TensorSharding:
    entries = [*sharding.spec, *(None,) * (rank - len(sharding.spec))]
    sizes = sharding.mesh.shape

    def dim(entry: Any) -> DimensionSharding:
        names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        return DimensionSharding(tuple(AxisRef(name) for name in names if sizes[name] > 1))

    return TensorSharding(mesh, tuple(map(dim, entries)))
