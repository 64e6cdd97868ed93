"""A program without two equal ops, so that no memoised outcome serves twice.

It is a chain of blocks, each with a size that no other block has; within a block each op has a name or types of its
own. No op has a region, whose ops would be alike. Only arguments carry shardings: the rows of the input over ``data``,
weights over ``model``, by their columns and by their rows in turn.
"""

from __future__ import annotations

ROWS, UNIT = 32, 8
_BLOCK = """\
    %v{n}_0 = stablehlo.dot_general %{x}, %w{n}, contracting_dims = [1] x [0] : ({ra}, {ab}) -> {rb}
    %v{n}_1 = stablehlo.tanh %v{n}_0 : {rb}
    %v{n}_2 = stablehlo.add %v{n}_1, %v{n}_0 : {rb}
    %v{n}_3 = stablehlo.transpose %v{n}_2, dims = [1, 0] : ({rb}) -> {br}
    %v{n}_4 = stablehlo.exponential %v{n}_3 : {br}
    %v{n}_5 = stablehlo.reshape %v{n}_4 : ({br}) -> {cur}
    %v{n}_6 = stablehlo.negate %v{n}_5 : {cur}
    %v{n}_7 = stablehlo.transpose %v{n}_6, dims = [0, 2, 1] : ({cur}) -> {cru}
    %v{n}_8 = stablehlo.slice %v{n}_7 [0:{c}, 0:{r}, 0:{h}] : ({cru}) -> {crh}
    %v{n}_9 = stablehlo.sine %v{n}_8 : {crh}
    %v{n}_10 = stablehlo.concatenate %v{n}_9, %v{n}_8, dim = 2 : ({crh}, {crh}) -> {cru}
    %v{n}_11 = stablehlo.multiply %v{n}_10, %v{n}_7 : {cru}
    %v{n}_12 = stablehlo.transpose %v{n}_11, dims = [1, 0, 2] : ({cru}) -> {rcu}
    %v{n}_13 = stablehlo.reshape %v{n}_12 : ({rcu}) -> {rb}
    %v{n}_14 = stablehlo.multiply %v{n}_13, %v{n}_2 : {rb}
    %v{n}_15 = stablehlo.maximum %v{n}_14, %v{n}_0 : {rb}
    %v{n}_16 = stablehlo.compare GT, %v{n}_15, %v{n}_14 : ({rb}, {rb}) -> {truth}
    %v{n}_17 = stablehlo.constant dense<{n}.0> : {rb}
    %v{n}_18 = stablehlo.select %v{n}_16, %v{n}_15, %v{n}_17 : {truth}, {rb}
    %v{n}_19 = stablehlo.subtract %v{n}_18, %v{n}_2 : {rb}
"""
"""Block ``n``: {rb} is the type with the sizes r and b, and so on."""

OPS_PER_BLOCK = _BLOCK.count("\n")


def distinct_program(ops: int) -> str:
    """Return a module whose main function has so many ops, and a return.

    Args:
        ops: How many, a multiple of `OPS_PER_BLOCK`.
    """
    blocks, rest = divmod(ops, OPS_PER_BLOCK)
    if rest:
        raise ValueError(f"{ops} is no multiple of {OPS_PER_BLOCK}")
    sharding = "{{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}}".format
    batch, rows, columns = sharding('{"data"}', "{}"), sharding('{"model"}', "{}"), sharding("{}", '{"model"}')
    arguments = [f"%x: {_tensor(ROWS, _size(0))} {batch}"]
    arguments += [
        f"%w{number}: {_tensor(_size(number), _size(number + 1))} {rows if number % 2 else columns}"
        for number in range(blocks)
    ]
    last = f"%v{blocks - 1}_{OPS_PER_BLOCK - 1}" if blocks else "%x"
    result = _tensor(ROWS, _size(blocks))
    return "\n".join(
        [
            "module @distinct {",
            '  sdy.mesh @mesh = <["data"=4, "model"=2]>',
            f"  func.func public @main({', '.join(arguments)}) -> {result} {{",
            *(_block(number).rstrip() for number in range(blocks)),
            f"    return {last} : {result}",
            "  }",
            "}\n",
        ]
    )


def _block(number: int) -> str:
    sizes = {"a": _size(number), "b": _size(number + 1), "r": ROWS, "u": UNIT, "h": UNIT // 2}
    sizes["c"] = sizes["b"] // UNIT
    names = ("ra", "ab", "rb", "br", "cur", "cru", "crh", "rcu")
    types = {name: _tensor(*(sizes[letter] for letter in name)) for name in names}
    truth = _tensor(ROWS, sizes["b"], element="i1")
    before = f"v{number - 1}_{OPS_PER_BLOCK - 1}" if number else "x"
    return _BLOCK.format(n=number, x=before, truth=truth, c=sizes["c"], r=ROWS, h=sizes["h"], **types)


def _size(number: int) -> int:
    return UNIT * (number + 4)


def _tensor(*sizes: int, element: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"
