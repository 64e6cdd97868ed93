"""``scf.forall``: a body that each thread, or each block, of a grid runs once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from shardy_py.kernels.dialect.gpu import DIMENSIONS, MappingAttr, ThreadMappingAttr
from shardy_py.kernels.dialect.types import INDEX, parse_arguments, parse_carried, print_carried, print_values


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """Insertion of a tensor, as a thread wrote it, into the result of the loop."""

    name = "tensor.parallel_insert_slice"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    dynamic = var_operand_def()
    dynamic_sizes = var_operand_def()
    dynamic_strides = var_operand_def()
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, source: SSAValue, dest: SSAValue, slices: Sequence[Sequence[int]]) -> None:
        names = ("static_offsets", "static_sizes", "static_strides")
        super().__init__(
            operands=[source, dest, [], [], []],
            properties={
                name: DenseArrayBase.from_list(i64, list(numbers)) for name, numbers in zip(names, slices, strict=True)
            },
        )

    @property
    def slices(self) -> tuple[tuple[int, ...], ...]:
        """Offsets, sizes and strides."""
        arrays = (self.static_offsets, self.static_sizes, self.static_strides)
        return tuple(tuple(map(int, array.get_values())) for array in arrays)

    def verify_(self) -> None:
        """Check that the slice covers the whole tensor; threads write single elements by ``tensor.insert``."""
        assert isinstance(self.dest.type, TensorType)
        shape = tuple(self.dest.type.get_shape())
        whole_tensor = ((0,) * len(shape), shape, (1,) * len(shape))
        if self.dynamic or self.dynamic_sizes or self.dynamic_strides or self.slices != whole_tensor:
            raise VerifyException("kernels write elements by tensor.insert; the slice has to be the whole tensor")
        if self.source.type != self.dest.type:
            raise VerifyException("source and target of the slice are tensors of one type")

    def print(self, printer: Printer) -> None:
        """Write ``%t into %out[0] [128] [1] : tensor<...> into tensor<...>``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        printer.print_string(" ".join(f"[{', '.join(map(str, numbers))}]" for numbers in self.slices))
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" into ")
        printer.print_attribute(self.dest.type)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelInsertSliceOp:
        """Read what `print` writes."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        slices = [parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer) for _ in range(3)]
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_keyword("into")
        target = parser.parse_type()
        return cls(parser.resolve_operand(source, type_), parser.resolve_operand(dest, target), slices)


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """The end of the body of ``scf.forall``: what its threads give."""

    name = "scf.forall.in_parallel"

    region = region_def("single_block")
    traits = traits_def(IsTerminator(), NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, region: Region) -> None:
        super().__init__(regions=[region])

    @property
    def inserted(self) -> tuple[ParallelInsertSliceOp, ...]:
        """The insertions into results."""
        return tuple(op for op in self.region.block.ops if isinstance(op, ParallelInsertSliceOp))

    def print(self, printer: Printer) -> None:
        """Write the ops in braces."""
        printer.print_string(" ")
        printer.print_region(self.region)

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        """Read the ops in braces."""
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls(region)


@irdl_op_definition
class ForallOp(IRDLOperation):
    """A body that runs once for every index, each by a thread, or a block, of its own."""

    name = "scf.forall"

    dynamic_lower = var_operand_def()
    dynamic_upper = var_operand_def()
    dynamic_step = var_operand_def()
    inits = var_operand_def(TensorType)
    static_lower = prop_def(DenseArrayBase, prop_name="staticLowerBound")
    static_upper = prop_def(DenseArrayBase, prop_name="staticUpperBound")
    static_step = prop_def(DenseArrayBase, prop_name="staticStep")
    mapping = opt_prop_def(ArrayAttr)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self, sizes: Sequence[int], inits: Sequence[SSAValue], body: Region, mapping: ArrayAttr[Attribute] | None = None
    ) -> None:
        bounds = {"staticLowerBound": [0] * len(sizes), "staticUpperBound": sizes, "staticStep": [1] * len(sizes)}
        arrays: dict[str, Attribute | None] = {
            name: DenseArrayBase.from_list(i64, list(numbers)) for name, numbers in bounds.items()
        }
        super().__init__(
            operands=[[], [], [], list(inits)],
            result_types=[[value.type for value in inits]],
            properties={**arrays, "mapping": mapping},
            regions=[body],
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of indices along each dimension."""
        return tuple(map(int, self.static_upper.get_values()))

    @property
    def mapped(self) -> tuple[tuple[str, int], ...]:
        """Per dimension ``thread`` or ``block``, and its dimension of the grid; by default threads along x, y, z."""
        if self.mapping is None:
            return tuple(("thread", number) for number in range(len(self.sizes)))
        return tuple(
            ("thread" if isinstance(item, ThreadMappingAttr) else "block", DIMENSIONS.index(item.data))
            for item in self.mapping.data
            if isinstance(item, MappingAttr)
        )

    @property
    def terminator(self) -> InParallelOp:
        """The last op of the body."""
        last = self.body.block.last_op
        assert isinstance(last, InParallelOp)
        return last

    def yielded_tensor(self, number: int) -> SSAValue:
        """Return the tensor that the body yields for a result; the argument where nothing is written to it."""
        argument = self.body.block.args[len(self.sizes) + number]
        return next((op.source for op in self.terminator.inserted if op.dest is argument), argument)

    def verify_(self) -> None:
        """Check bounds, mapping and body."""
        if self.dynamic_lower or self.dynamic_upper or self.dynamic_step:
            raise VerifyException("a kernel's grid has sizes that are known: the bounds have to be constants")
        if any(self.static_lower.get_values()) or any(step != 1 for step in self.static_step.get_values()):
            raise VerifyException("the indices begin with 0, in steps of 1")
        rank = len(self.sizes)
        if len(set(self.mapped)) != rank or rank > 2 * len(DIMENSIONS):
            raise VerifyException("every dimension is mapped to one of the grid: #gpu.thread<x> or #gpu.block<x>")
        if len(self.body.block.args) != rank + len(self.inits):
            raise VerifyException("the body takes an index per dimension, then a tensor per result")
        if not isinstance(self.body.block.last_op, InParallelOp):
            raise VerifyException("the body ends with scf.forall.in_parallel")

    def print(self, printer: Printer) -> None:
        """Write ``(%i) in (128) shared_outs(%out = %o) -> (tensor<...>) {...}``."""
        rank = len(self.sizes)
        print_values(printer, self.body.block.args[:rank], " (", ")")
        printer.print_string(f" in ({', '.join(map(str, self.sizes))})")
        if self.inits:
            print_carried(printer, "shared_outs", self.body.block.args[rank:], self.inits)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        attributes = dict(self.attributes)
        if self.mapping is not None:
            attributes["mapping"] = self.mapping
        printer.print_op_attributes(attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        """Read what `print` writes, and bounds as ``= (0) to (128) step (1)``."""

        def numbers() -> list[int]:
            return parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)

        position = parser.pos
        indices = parse_arguments(parser, Parser.Delimiter.PAREN)
        lower, step = [0] * len(indices), [1] * len(indices)
        if parser.parse_optional_punctuation("="):
            lower = numbers()
            parser.parse_keyword("to")
            sizes = numbers()
            parser.parse_keyword("step")
            step = numbers()
        else:
            parser.parse_keyword("in")
            sizes = numbers()
        if any(lower) or any(item != 1 for item in step) or len(sizes) != len(indices):
            parser.raise_error("indices that begin with 0, in steps of 1, and a bound per index are expected")
        pairs: list[Any] = []
        types: list[Any] = []
        if parser.parse_optional_keyword("shared_outs"):
            pairs = parse_carried(parser)
            parser.parse_punctuation("->")
            in_parentheses = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
            types = [parser.parse_type()] if in_parentheses is None else in_parentheses
        inits = parser.resolve_operands([pair[1] for pair in pairs], types, position)
        arguments = [item.resolve(INDEX) for item in indices]
        arguments += [pair[0].resolve(type_) for pair, type_ in zip(pairs, types, strict=True)]
        body = parser.parse_region(arguments)
        if not isinstance(body.block.last_op, InParallelOp):
            body.block.add_op(InParallelOp(Region(Block())))
        attributes = dict(parser.parse_optional_attr_dict())
        mapping = attributes.pop("mapping", None)
        if mapping is not None and not isinstance(mapping, ArrayAttr):
            parser.raise_error("an array of mappings is expected")
        op = cls(sizes, inits, body, mapping)
        op.attributes |= attributes
        return op
