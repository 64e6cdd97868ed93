"""Op graphs from exported programs and graph modules."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.op_names import CONSTRAINT, SHARDING_GROUP
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.torch.constraints import OPERATOR
from shardy_py.torch.frontend import flex_attention, foreach
from shardy_py.torch.frontend.batched_products import Operand, batched_products
from shardy_py.torch.frontend.calls import Call, flat, schema_arguments
from shardy_py.torch.frontend.drawing import drawn_in_order
from shardy_py.torch.frontend.functional import (
    arguments_without_writes,
    functional,
    is_dense,
    results_without_writes,
    without_writes,
)
from shardy_py.torch.frontend.inferred_sizes import SIZED, inferred_dims, shape_indices
from shardy_py.torch.frontend.load import import_torch
from shardy_py.torch.frontend.local_regions import LocalRun, import_run, in_runs, local_nodes
from shardy_py.torch.frontend.origin import Output, TorchOrigin
from shardy_py.torch.frontend.places import location_of, module_of
from shardy_py.torch.frontend.regions import REGION_OPS, inlined_call
from shardy_py.torch.frontend.rewrites import REWRITES
from shardy_py.torch.frontend.signature import Signature, read_signature
from shardy_py.torch.frontend.types import DTYPES, as_number, is_symbolic, tensor_type

_FIRST_OFTEN_ALONE = frozenset(("aten.embedding_bag.default", "aten.embedding_bag.padding_idx"))
"""Operators whose results but the first serve gradients only; without these the first can be sharded alone."""


_FILLED = frozenset(("aten.full.default", "aten.full_like.default", "aten.scalar_tensor.default"))


def import_program(native: Any, *, frontend: Frontend) -> Program:
    """Return the op graph of an exported program or a graph module.

    Args:
        native: The exported program or graph module.
        frontend: The frontend that the program came through.

    Raises:
        UnsupportedError: a size depends on data, or a node cannot be imported.
    """
    return Importer(native, frontend).run()


class Importer:
    """Importer of one program.

    Attributes:
        builder: Builds the op graph.
        values: Node to its value, to the values of its results, or to what is no tensor.
    """

    def __init__(self, native: Any, frontend: Frontend) -> None:
        import_torch("-")
        program, self._overwritten = functional(native)
        self.signature: Signature = read_signature(program)
        self.builder = Builder()
        self.values: dict[Any, Any] = {}
        self._stacked: dict[Any, Any] = {}
        self._frontend = frontend
        self._node_names: dict[int, str] = {}
        self._module_paths: dict[int, str] = {}
        self._module_types: dict[str, str] = {}
        self._inferred_dims: dict[int, tuple[int, ...]] = {}
        self._shape_indices: dict[int, tuple[int, ...]] = {}
        self._overloads: dict[str, Any] = {}
        self._node = ""
        self._module_path: str | None = None

    def run(self) -> Program:
        """Return the op graph."""
        signature = self.signature
        types = [tensor_type(value, node=argument.node, location="") for argument, value in signature.arguments]
        with self.builder.function("main", types) as arguments:
            for (argument, _), value in zip(signature.arguments, arguments, strict=True):
                self._node_names[value.id] = argument.name
            self.values.update(signature.bind(arguments))
            outputs = self.run_graph(signature.module)
            results, described = self._outputs(outputs)
            self._tie(arguments, described, results)
            self.builder.return_(*results)
        program = self.builder.build()
        program.frontend = self._frontend
        program.origin = TorchOrigin(
            signature.native,
            tuple(argument for argument, _ in signature.arguments),
            tuple(described),
            self._node_names,
            self._module_paths,
            self._overloads,
            self._module_types,
            self._inferred_dims,
            self._shape_indices,
        )
        return program

    def _tie(self, arguments: Sequence[Value], outputs: Sequence[Output], results: Sequence[Value]) -> None:
        """Let results be sharded as the arguments are that they belong to: gradients as parameters."""
        for group, (argument, output) in enumerate(self.signature.pairs):
            number = outputs[output].result
            if number is not None:
                for value in (arguments[argument], results[number]):
                    self.builder.emit(SHARDING_GROUP, [value], (), {"group_id": group})

    def run_graph(self, module: Any) -> Any:
        """Add the ops of the graph of a module whose placeholders have values, and return its output."""
        nodes = list(module.graph.nodes)
        local = local_nodes(nodes)
        products = batched_products(nodes, local)
        for node in in_runs(nodes, local):
            if isinstance(node, LocalRun):
                import_run(self, node, self._stacked)
            elif node.op == "output":
                return self.resolve(node.args[0])
            elif node in products.operands:
                self._multiply(node, products.operands[node])
            elif node not in products.skipped:
                self.import_node(node, module)
        raise UnsupportedError(Diagnostic("no-output", "a graph has no output node"))

    def import_node(self, node: Any, module: Any = None) -> None:
        """Add the ops of a node of a graph.

        Raises:
            UnsupportedError: it has no form as an op.
        """
        if node.op == "get_attr" and node not in self.values:
            self.values[node] = attrgetter(node.target)(module)
        elif node.op == "call_function":
            with self.builder.at(location_of(node)):
                self._enter(node)
                self.values[node] = self._call(node)
        elif node.op not in ("placeholder", "get_attr"):
            raise _refuse(node, f"the node {node.name} is a {node.op}", "export the module: torch.export.export")

    def _multiply(self, node: Any, operands: Sequence[Operand]) -> None:
        """Add the product of a node with all of its batch dimensions."""
        place = location_of(node)
        with self.builder.at(place):
            self._enter(node)
            values = []
            for item in operands:
                value = self.values[item.node]
                if item.is_turned:
                    *batch, rows, columns = value.type.shape
                    turned = TensorType((*batch, columns, rows), value.type.element_type)
                    dims = {"dim0": len(batch), "dim1": len(batch) + 1}
                    (value,) = self.emit(Call("aten.transpose.int", {"self": value, **dims}, (turned,), False, place))
                values.append(value)
            arguments = dict(zip(("self", "other"), values, strict=True))
            self.values[node] = self.emit(
                Call("aten.matmul.default", arguments, self.result_types(node), False, place)
            )[0]
            self.name_results(node, [self.values[node]])

    def run_subgraph(self, module: Any, inputs: Sequence[Any]) -> Any:
        """Add the ops of a nested graph with these inputs, and return its output."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.values.update(zip(placeholders, inputs, strict=True))
        return self.run_graph(module)

    def resolve(self, argument: Any) -> Any:
        """Return an argument of a node with values in the places of nodes, and lists for all sequences."""
        if isinstance(argument, (list, tuple)):
            return (
                type(argument)(map(self.resolve, argument))
                if type(argument) in (list, tuple)
                else list(map(self.resolve, argument))
            )
        if isinstance(argument, Mapping):
            return {key: self.resolve(item) for key, item in argument.items()}
        return (
            self.values[argument] if _is_node(argument) else as_number(argument) if is_symbolic(argument) else argument
        )

    def emit(self, call: Call) -> list[Value | None]:
        """Add the op of a call and return its results, None for those that are not computed."""
        types = [type_ for type_ in call.types if type_ is not None]
        op = self.builder.emit(call.name, [value for _, value in call.operands()], types, call.attributes())
        self.note_module(op.id)
        # One of several ops of a node; the last ones get the name of the node itself.
        self._name(f"{self._node}/{call.name.split('.')[1]}", op.results)
        results = iter(op.results)
        return [None if type_ is None else next(results) for type_ in call.types]

    def note_module(self, op_id: int) -> None:
        """Note the module path of an op of the node at hand."""
        if self._module_path is not None:
            self._module_paths[op_id] = self._module_path

    def _enter(self, node: Any) -> None:
        """Begin with the ops of a node."""
        module = module_of(node)
        self._node, self._module_path = node.name, None if module is None else module[0]
        if module is not None:
            self._module_types.setdefault(*module)

    def _note_sizes(self, node: Any, call: Call, results: Sequence[Value | None]) -> None:
        """Note the sizes and numbers of the op of a node that the module computes from its tensors."""
        op = next((value.defining_op for value in results if value is not None), None)
        if op is not None and call.name in SIZED:
            self._inferred_dims[op.id] = inferred_dims(node)
        elif op is not None and (call.pointwise or call.name in _FILLED) and (indices := shape_indices(node)):
            self._shape_indices[op.id] = indices

    def name_results(self, node: Any, results: Sequence[Value | None]) -> None:
        """Name the results of a node."""
        self._name(node.name, results)

    def _name(self, name: str, results: Sequence[Value | None]) -> None:
        several = len(results) > 1
        for number, value in enumerate(results):
            if value is not None:
                self._node_names[value.id] = f"{name}#{number}" if several else name

    def result_types(self, node: Any) -> tuple[TensorType | None, ...]:
        """Return the types of the results of a node, None for those that are not computed."""
        value = node.meta.get("val")
        place = location_of(node)
        return tuple(
            tensor_type(item, node=node.name, location=place) if hasattr(item, "dtype") else None
            for item in flat(value)
        )

    def _call(self, node: Any) -> Any:
        if node.target is operator.getitem:
            container, index = self.resolve(node.args[0]), node.args[1]
            return container[index]
        if is_symbolic(node.meta.get("val")):
            return self._number(node)
        target = without_writes(node)
        args, kwargs = self.resolve(node.args), self.resolve(node.kwargs)
        if not hasattr(target, "_schema"):
            return self._call_higher_order(node, args, kwargs)
        if str(target) == OPERATOR:
            return self._constrain(node, *args)
        node_types, name = self.result_types(node), str(target)
        types = node_types
        if target is not node.target:
            place, examples = location_of(node), results_without_writes(node, target)
            types = tuple(tensor_type(item, node=node.name, location=place) for item in examples)
        if not any(types):
            return self._without_tensors(node)
        if name == "aten.as_strided.default" and not is_dense(node.args[0]):
            hint = "call contiguous or clone before"
            raise _refuse(node, f"the node {node.name} looks at places in memory of a view", hint)
        if name in _FIRST_OFTEN_ALONE and _is_first_alone(node):
            types = (types[0], *[None] * (len(types) - 1))
        self._overloads[name] = target
        args, kwargs = arguments_without_writes(node, target, args, kwargs)
        call = Call(name, schema_arguments(target, args, kwargs), types, _is_pointwise(target), location_of(node))
        rewrite = foreach.rewrite_of(name) or REWRITES.get(name)
        results = rewrite(self.emit, call) if rewrite is not None else None
        if results is None and _is_random(target) and node.args:
            fake = getattr(node.args[0], "meta", {}).get("val")
            results = drawn_in_order(self.emit, call, fake, is_written=target is not node.target)
        results = self.emit(call) if results is None else results
        self._note_sizes(node, call, results)
        if target is not node.target:
            results = [self._as_written(call, *pair) for pair in zip_longest(results, node_types)]
        self.name_results(node, results[: len(node_types)])
        for item, number in self._overwritten.get(node, ()):
            self.values[item] = results[number]
        return _nested(iter(results), node.meta.get("val"))

    def _constrain(self, node: Any, value: Value, text: str) -> Value:
        """Add a sharding constraint; its mesh comes with the run."""
        sharding = parse_tensor_sharding(text)
        result: Value = self.builder.op(CONSTRAINT, [value], [value.type], sharding=sharding)
        self.builder.program.shardings[result.id] = sharding
        self.name_results(node, [result])
        return result

    def _as_written(self, call: Call, value: Value | None, type_: TensorType | None) -> Value | None:
        """Return a result in the type of the tensor that it was written to."""
        if value is None or type_ is None or value.type == type_:
            return value
        dtype = f"torch.{DTYPES[type_.element_type]}"
        return self.emit(
            evolve(
                call,
                name="aten._to_copy.default",
                arguments={"self": value, "dtype": dtype},
                types=(type_,),
                pointwise=False,
            )
        )[0]

    def _call_higher_order(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name = getattr(node.target, "__name__", str(node.target))
        inlined = inlined_call(name, args)
        if inlined is not None:
            return self.run_subgraph(*inlined)
        if name == flex_attention.NAME:
            traced, inputs = flex_attention.made_of_operators(node)
            return self.run_subgraph(traced, [self.values[item] for item in inputs])
        make = REGION_OPS.get(name)
        if make is None:
            hint = "export with static shapes, and put other control flow into torch.cond, while_loop, scan or map"
            raise _refuse(node, f"the node {node.name} calls {name}, which has no form as an op", hint)
        results = make(self, args, kwargs, self.result_types(node))
        self.name_results(node, results)
        return results

    def _number(self, node: Any) -> Any:
        """Return a number that follows from a dynamic size, as it is for the size of the example."""
        number = as_number(node.meta["val"])
        if number is None:
            hint = "export without ops whose result is a number from data, such as item"
            raise _refuse(node, f"the node {node.name} makes a number that depends on data", hint)
        return number

    def _without_tensors(self, node: Any) -> Any:
        """Return the result of a node without tensors: nothing for an assertion, which no device needs to repeat."""
        value = node.meta.get("val")
        if value is None:
            return None
        if type(value) in (int, float, bool):
            return value
        hint = "export without dynamic_shapes, and without ops whose result is a number from data, such as item"
        raise _refuse(node, f"the node {node.name} makes a {type(value).__name__}", hint)

    def _outputs(self, nested: Any) -> tuple[list[Value], list[Output]]:
        results: list[Value] = []
        described: list[Output] = []
        for number, value in enumerate(flat(nested)):
            name, writes = self.signature.output(number)
            if isinstance(value, Value):
                described.append(Output(name or self._node_names.get(value.id, ""), len(results), writes=writes))
                results.append(value)
            else:
                described.append(Output(name, None, value, writes))
        return results, described


def _nested(results: Iterator[Value | None], value: Any) -> Any:
    """Return results in the lists in which an operator returns tensors; one that is not computed has a place, too."""
    if isinstance(value, (list, tuple)):
        return [_nested(results, item) for item in value]
    return next(results, None)


def _is_node(value: Any) -> bool:
    return type(value).__name__ == "Node" and hasattr(value, "all_input_nodes")


def _is_first_alone(node: Any) -> bool:
    """Return whether only the first result of a node is used."""
    return all(user.target is operator.getitem and (user.args[1] == 0 or not user.users) for user in node.users)


def _is_random(target: Any) -> bool:
    return any(getattr(tag, "name", "") == "nondeterministic_seeded" for tag in target.tags)


def _is_pointwise(target: Any) -> bool:
    """Return whether each element of the results comes from those of the operands alone, and from no random number."""
    return any(getattr(tag, "name", "") == "pointwise" for tag in target.tags) and not _is_random(target)


def _refuse(node: Any, message: str, hint: str) -> UnsupportedError:
    return UnsupportedError(Diagnostic("unsupported-node", message, location_of(node), str(node.target), hint))
