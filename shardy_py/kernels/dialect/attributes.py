"""Attributes of the dialect ``xla_gpu``."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from shardy_py.indexing import IndexingMap


@irdl_attr_definition
class IndexingMapAttr(Data[IndexingMap]):
    """An indexing map: ``#xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 7]">``."""

    name = "xla_gpu.indexing_map"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexingMap:
        """Read the text of the map, which may be cut into several strings."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
            while (more := parser.parse_optional_str_literal()) is not None:
                text += more
        return IndexingMap.parse(text)

    def print_parameter(self, printer: Printer) -> None:
        """Write the text of the map, divisions as ``floordiv``."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.print(spelling="floordiv"))
