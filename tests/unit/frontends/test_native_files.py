"""Files and local programs of the frontends of plugins: what is written can be read again, or is refused."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.api.native_file import native_file
from shardy_py.errors import ParseError, UnsupportedError
from shardy_py.ir import Program


class Packed(sdy.Frontend):
    """A binary format of a product; the text of a program is JSON."""

    name = "packed"

    def accepts(self, source: object) -> bool:
        """Return whether this is a graph, or the path of one."""
        return isinstance(source, dict) or (isinstance(source, Path) and source.suffix == ".packed")

    def import_program(self, source: Any) -> Program:
        """Return the op graph."""
        graph = json.loads(zlib.decompress(source.read_bytes())) if isinstance(source, Path) else source
        builder = sdy.Builder(mesh=graph["mesh"])
        with builder.function("main", [sdy.tensor(8, 16), sdy.tensor(16, 4)]) as (x, w):
            builder.shard(x, graph["input"])
            builder.return_(builder.op("packed.mm", [x, w], [sdy.tensor(8, 4)]))
        builder.program.origin = graph
        return builder.build()

    def write_back(self, program: Program) -> Any:
        """Return the graph with the sharding of its result."""
        program.origin["output"] = str(program.sharding(program.functions["main"].function_results[0]))
        return program.origin

    def print_text(self, source: Any) -> str:
        """Return the graph as JSON, which is not what files hold."""
        return json.dumps(source)


class WithBytes(Packed):
    """Gives other processes what is in files."""

    def to_bytes(self, source: Any) -> bytes:
        """Return the content of a file."""
        return zlib.compress(json.dumps(source).encode())


class WithFiles(WithBytes):
    """Writes files and local programs itself."""

    def write_file(self, native: Any, path: Path) -> None:
        """Write a file with a name in it."""
        path.write_bytes(self.to_bytes({**native, "file": path.name}))

    def write_local(self, program: Program) -> Any:
        """Return the names of the ops of a device."""
        return [op.name for op in program.walk() if op.operands and op.results]

    def run_local(self, native: Any, device_count: int, shards: Any) -> Any:
        """Multiply the shards, and add them up."""
        x, w = shards
        parts = np.stack([x[device] @ w[device] for device in range(device_count)])
        return [np.stack([parts.sum(0)] * device_count)]


PACKED = sdy.Dialect("packed")
PACKED.op("packed.mm", rule="i k, k j -> i j", reduction="k")
GRAPH = {"mesh": {"d": 2}, "input": '[{}, {"d"}]'}


def propagated(frontend: sdy.Frontend) -> sdy.Result:
    """Return the propagated graph, whose summed dimension is sharded."""
    registry = sdy.Registry.from_entry_points(plugins=[_plugin(frontend)])
    return sdy.propagate(dict(GRAPH), registry=registry, explicit_collectives=True)


def _plugin(frontend: sdy.Frontend) -> object:
    class Plugin:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [PACKED]

        @sdy.hookimpl
        def shardy_register_frontends(self) -> list[sdy.Frontend]:
            return [frontend]

    return Plugin()


def test_a_file_that_the_frontend_reads_again_is_written() -> None:
    """Where the text is not what files of the suffix hold, they get the bytes of the frontend."""
    result = propagated(WithBytes())
    assert json.loads(zlib.decompress(native_file(result, "out.packed"))) == result.module


def test_a_file_of_another_suffix_has_the_text() -> None:
    """A frontend that does not read files of a name says nothing about them."""
    assert json.loads(native_file(propagated(WithBytes()), "out.json"))["mesh"] == {"d": 2}


def test_a_file_that_the_frontend_cannot_read_is_refused() -> None:
    """Neither the text nor the bytes are what files hold: the error names the method to write."""
    with pytest.raises(UnsupportedError, match="cannot read the file that it would write") as caught:
        native_file(propagated(Packed()), "out.packed")
    assert "Frontend.write_file" in caught.value.diagnostics[0].hint


def test_a_frontend_writes_its_files_itself() -> None:
    """`write_file` gets a path with the name of the user's file."""
    written = json.loads(zlib.decompress(native_file(propagated(WithFiles()), "deep/out.packed")))
    assert written["file"] == "out.packed"


def test_a_local_program_of_another_ir_is_printed_in_generic_form() -> None:
    """Without a form of its own the program of a device is MLIR's generic text, with the sizes of shards."""
    local = propagated(Packed()).local()
    assert '"packed.mm"(%arg0, %arg1)' in local.text
    assert "(tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>" in local.text
    assert local.arguments[0].shard_shape == (8, 8)
    assert "all_reduce" in local.text
    with pytest.raises(UnsupportedError, match="does not run local programs"):
        local.run(np.zeros((8, 16), np.float32), np.zeros((16, 4), np.float32))


def test_a_frontend_writes_and_runs_its_local_programs() -> None:
    """`write_local` gives the native form, and `run_local` runs it on shards that are split and joined for it."""
    local = propagated(WithFiles()).local()
    assert local.module[0] == "packed.mm"
    assert json.loads(local.text) == local.module
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    w = np.ones((16, 4), np.float32)
    np.testing.assert_array_equal(local.run(x, w)[0], x @ w)


def test_a_program_that_nothing_runs_says_so() -> None:
    """JAX has no form of it, and the error says what runs the program of each device."""
    result = sdy.propagate({"mesh": {"d": 2}, "input": '[{"d"}, {}]'}, plugins=[_plugin(Packed())])
    with pytest.raises(UnsupportedError, match="JAX does not run programs of the frontend 'packed'"):
        result.to_jax()


@pytest.mark.parametrize("path", ["missing.packed", "x" * 300 + ".packed"], ids=["missing", "too long"])
def test_a_file_that_is_not_there_is_no_fault_of_a_frontend(path: str) -> None:
    """The error is that of any other file."""
    with pytest.raises(ParseError, match="cannot read the file"):
        sdy.propagate(Path(path), {"d": 2}, plugins=[_plugin(Packed())])
