"""The entry function of the concatenate emitter: a loop per operand, each over the same threads."""

from __future__ import annotations

from xdsl.dialects import func, tensor

from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.elemental.epilogues import Epilogue, call_epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import called_element, entry_scope
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.joined import joined_input_map, joined_output_maps


def concatenate_entry(functions: FunctionEmitter, choice: Choice, launch: Launch) -> func.FuncOp:
    """Return the entry function of a concatenate: what is read of an operand goes through the epilogue to the root.

    Mirrors ``ConcatenateFusion`` of XLA.
    """
    fusion = functions.fusion
    (hero,), (root,) = choice.heroes, fusion.roots
    assert hero is not None
    entry = EntryBuilder(fusion, launch)
    epilogue = Epilogue.at_root(hero.results[0], root)
    name = emit_epilogue(functions, epilogue)
    read = joined_input_map(fusion, hero, launch)
    outputs = list(entry.outputs)
    for operand, map_ in zip(hero.operands, joined_output_maps(fusion, hero, root, launch), strict=True):
        loop = LoopOp(map_, entry.ids, outputs)
        entry.builder.insert(loop)
        scope = entry_scope(functions, loop.body.block)
        index = scope.apply(read, entry.ids, loop.symbols)
        element = called_element(functions, scope, operand, entry.parameters, index)
        found = call_epilogue(scope, name, epilogue, entry.parameters, loop.indices, [element])
        scope.builder.insert(YieldOp(scope.add(tensor.InsertOp(found[root], loop.carried[0], list(loop.indices)))))
        outputs = list(loop.outputs)
    return entry.finished(tuple(outputs))
