"""Programs that grow in one respect: ops, users, operands, results, rank, axes, calls, nesting, sizes of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

T = "tensor<8x8xf32>"
VECTOR = "tensor<8xf32>"
GROWTHS: dict[str, Callable[[int], str]] = {}
"""Programs by what grows; each takes how much of it there is."""
NUMBERS: dict[str, Callable[[int], str]] = {}
"""Programs in which a number grows; each takes the number."""


def grows(program: Callable[[int], str]) -> Callable[[int], str]:
    """Add a program to those that grow."""
    GROWTHS[program.__name__] = program
    return program


def grows_by_number(program: Callable[[int], str]) -> Callable[[int], str]:
    """Add a program to those in which a number grows."""
    NUMBERS[program.__name__] = program
    return program


def argument(name: str, type_: str = T, dims: str = '{"x"}, {?}') -> str:
    """Return an argument of the main function with its sharding."""
    return f"%{name}: {type_} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def module(
    arguments: Iterable[str], body: str, results: list[str], types: list[str], *, mesh: str = '"x"=2, "y"=2'
) -> str:
    """Return a module with a main function."""
    return (
        f"sdy.mesh @mesh = <[{mesh}]>\n"
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}\n"
        f"return {', '.join(results)} : {', '.join(types)}\n}}\n"
    )


def times(count: int, text: Callable[[int], str], separator: str = "\n") -> str:
    """Return a text for each number below a count."""
    return separator.join(map(text, range(count)))


def names(count: int, pattern: str = "%a{}") -> list[str]:
    """Return the names of so many values."""
    return [pattern.format(number) for number in range(count)]


def before(number: int) -> str:
    """Return the result of the op before an op of a chain."""
    return f"%{number - 1}" if number else "%a"


@grows
def ops(n: int) -> str:
    """Return a chain of products."""
    body = times(
        n,
        lambda i: f"%{i} = stablehlo.dot_general {before(i)}, %b, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}",
    )
    return module([argument("a"), argument("b", dims='{?}, {"y"}')], body, [f"%{n - 1}"], [T])


@grows
def reshards(n: int) -> str:
    """Return a chain of constraints that move a tensor to and fro."""
    dims = ('{"x"}, {}', '{}, {"x"}')
    body = times(n, lambda i: f"%{i} = sdy.sharding_constraint {before(i)} <@mesh, [{dims[(i + 1) % 2]}]> : {T}")
    return module([argument("a")], body, [f"%{n - 1}"], [T])


@grows
def users(n: int) -> str:
    """Return a value with many users that want it in different ways."""
    dims = ("{}, {}", '{"x"}, {}', '{}, {"y"}')
    body = times(n, lambda i: f"%{i} = sdy.sharding_constraint %a <@mesh, [{dims[i % 3]}]> : {T}")
    return module([argument("a")], body, names(n, "%{}"), [T] * n)


@grows
def equal_operands(n: int) -> str:
    """Return an op with the same operand many times."""
    type_ = f"tensor<{8 * n}xf32>"
    inputs, types = ", ".join(["%a"] * n), ", ".join([VECTOR] * n)
    body = f"%0 = stablehlo.concatenate {inputs}, dim = 0 : ({types}) -> {type_}"
    return module([argument("a", VECTOR, '{"x"}')], body, ["%0"], [type_])


@grows
def operands_with_refusals(n: int) -> str:
    """Return an op whose operands are sharded along an axis that its result has elsewhere."""
    type_ = f"tensor<{8 * n}x8xf32>"
    inputs, types = ", ".join(names(n)), ", ".join([T] * n)
    body = f"%r = stablehlo.concatenate {inputs}, dim = 0 : ({types}) -> {type_}\n%0 = stablehlo.negate %r : {type_}"
    arguments = [argument(f"a{i}", dims='{"y"}, {"x"}') for i in range(n)]
    return module(arguments, body, ["%0"], [type_])


@grows
def results(n: int) -> str:
    """Return an op with many results, and as many operands."""
    inputs, types, scalars = ", ".join(names(n)), ", ".join([T] * n), names(2 * n, "%c{}: tensor<f32>")
    body = (
        f'%0:{n} = "stablehlo.sort"({inputs}) ({{\n^bb0({", ".join(scalars)}):\n'
        "%p = stablehlo.compare LT, %c0, %c1 : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %p : tensor<i1>\n"
        f"}}) {{dimension = 0 : i64, is_stable = true}} : ({types}) -> ({types})"
    )
    return module([argument(f"a{i}") for i in range(n)], body, names(n, "%0#{}"), [T] * n)


@grows
def carried_values(n: int) -> str:
    """Return a loop that carries many values."""
    types = ", ".join(["tensor<i32>", *[T] * n])
    carried = ", ".join(["%k = %c", *names(n, "%i{0} = %a{0}")])
    body = (
        "%c = stablehlo.constant dense<0> : tensor<i32>\n%l = stablehlo.constant dense<5> : tensor<i32>\n"
        f"%o = stablehlo.constant dense<1> : tensor<i32>\n%0:{n + 1} = stablehlo.while({carried}) : {types} cond {{\n"
        "%p = stablehlo.compare LT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %p : tensor<i1>\n} do {\n"
        f"{times(n, lambda i: f'%n{i} = stablehlo.negate %i{i} : {T}')}\n%m = stablehlo.add %k, %o : tensor<i32>\n"
        f"stablehlo.return {', '.join(['%m', *names(n, '%n{}')])} : {types}\n}}"
    )
    return module([argument(f"a{i}") for i in range(n)], body, [f"%0#{i + 1}" for i in range(n)], [T] * n)


@grows
def branches(n: int) -> str:
    """Return an op with many regions."""
    regions = times(n, lambda i: f"{{\n%b{i} = stablehlo.negate %a : {T}\nstablehlo.return %b{i} : {T}\n}}", ", ")
    body = f'%0 = "stablehlo.case"(%i) ({regions}) : (tensor<i32>) -> {T}'
    return module([argument("a"), "%i: tensor<i32>"], body, ["%0"], [T])


@grows
def functions(n: int) -> str:
    """Return functions that are called once each."""
    body = times(n, lambda i: f"%{i} = func.call @f{i}({before(i)}) : ({T}) -> {T}")
    others = times(
        n,
        lambda i: f"func.func private @f{i}(%a: {T}) -> {T} {{\n%0 = stablehlo.negate %a : {T}\nreturn %0 : {T}\n}}",
    )
    return module([argument("a")], body, [f"%{n - 1}"], [T]) + others


@grows
def calls(n: int) -> str:
    """Return a function that is called many times."""
    body = times(n, lambda i: f"%{i} = func.call @f({before(i)}) : ({T}) -> {T}")
    other = f"func.func private @f(%a: {T}) -> {T} {{\n%0 = stablehlo.negate %a : {T}\nreturn %0 : {T}\n}}"
    return module([argument("a")], body, [f"%{n - 1}"], [T]) + other


@grows
def manual_computations(n: int) -> str:
    """Return a chain of manual computations."""
    local, shardings = "tensor<4x8xf32>", '[<@mesh, [{"x"}, {}]>]'
    body = times(
        n,
        lambda i: (
            f"%{i} = sdy.manual_computation({before(i)}) in_shardings={shardings} out_shardings={shardings}"
            f' manual_axes={{"x"}} (%x{i}: {local}) {{\n%y{i} = stablehlo.negate %x{i} : {local}\n'
            f"sdy.return %y{i} : {local}\n}} : ({T}) -> {T}"
        ),
    )
    return module([argument("a")], body, [f"%{n - 1}"], [T])


@grows
def ops_without_rule(n: int) -> str:
    """Return a chain of ops that no dialect defines."""
    body = times(n, lambda i: f'%{i} = "my.op"({before(i)}) : ({T}) -> {T}')
    return module([argument("a")], body, [f"%{n - 1}"], [T])


@grows
def constants(n: int) -> str:
    """Return a constant that many ops use, and what is computed of it."""
    body = times(n, lambda i: f"%{i} = stablehlo.add {before(i)}, %c : {T}")
    return module([argument("a")], f"%c = stablehlo.constant dense<1.0> : {T}\n{body}", [f"%{n - 1}"], [T])


@grows
def elements(n: int) -> str:
    """Return a constant with many elements."""
    type_ = f"tensor<{n}xf32>"
    body = (
        f"%c = stablehlo.constant dense<[{times(n, lambda i: f'{i}.0', ', ')}]> : {type_}\n"
        f"%0 = stablehlo.add %a, %c : {type_}"
    )
    return module([argument("a", type_, '{"x"}')], body, ["%0"], [type_])


@grows
def dimensions(n: int) -> str:
    """Return tensors of many dimensions that are transposed and added."""
    type_ = f"tensor<{'x'.join(['2'] * n)}xf32>"
    order = ", ".join(map(str, reversed(range(n))))
    body = (
        f"%0 = stablehlo.negate %a : {type_}\n%1 = stablehlo.transpose %0, dims = [{order}] : ({type_}) -> {type_}\n"
        f"%2 = stablehlo.add %1, %a : {type_}"
    )
    return module([argument("a", type_, ", ".join(['{"x"}', *["{?}"] * (n - 1)]))], body, ["%2"], [type_])


@grows
def axes(n: int) -> str:
    """Return a mesh with many axes, most of which are idle."""
    mesh = times(n, lambda i: f'"m{i}"={2 if i < 4 else 1}', ", ")
    body = f"%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : ({T}, {T}) -> {T}"
    return module([argument("a", dims='{"m0", "m1"}, {?}')], body, ["%0"], [T], mesh=mesh)


@grows
def user_priorities(n: int) -> str:
    """Return a chain of sums with arguments, each of a user priority of its own."""
    arguments = [argument(f"a{i}", dims=f'{{"x"}}p{i}, {{?}}') for i in range(n)]
    body = times(n, lambda i: f"%{i} = stablehlo.add {before(i) if i else '%a0'}, %a{i} : {T}")
    return module(arguments, body, [f"%{n - 1}"], [T])


@grows
def disagreeing_operands(n: int) -> str:
    """Return an op whose operands are sharded in different ways along the same factors."""
    type_ = f"tensor<{8 * n}x8xf32>"
    inputs, types = ", ".join(names(n)), ", ".join([T] * n)
    body = f"%0 = stablehlo.concatenate {inputs}, dim = 0 : ({types}) -> {type_}"
    arguments = [argument(f"a{i}", dims=('{}, {"x"}', '{}, {"y"}', "{}, {}")[i % 3]) for i in range(n)]
    return module(arguments, body, ["%0"], [type_])


@grows
def group_members(n: int) -> str:
    """Return a sharding group with many members."""
    body = times(n, lambda i: f"%{i} = stablehlo.negate %a{i} : {T}\nsdy.sharding_group %{i} group_id=1 : {T}")
    arguments = [argument("a0"), *[f"%a{i}: {T}" for i in range(1, n)]]
    return module(arguments, body, names(n, "%{}"), [T] * n)


@grows
def groups(n: int) -> str:
    """Return many sharding groups."""
    body = times(n, lambda i: f"%{i} = stablehlo.negate {before(i)} : {T}\nsdy.sharding_group %{i} group_id={i} : {T}")
    return module([argument("a")], body, [f"%{n - 1}"], [T])


@grows
def meshes(n: int) -> str:
    """Return constraints over many meshes of the same devices."""
    body = times(n, lambda i: f'%{i} = sdy.sharding_constraint {before(i)} <@m{i}, [{{"x"}}, {{}}]> : {T}')
    others = times(n, lambda i: f'sdy.mesh @m{i} = <["x"=2, "z{i}"=2]>')
    return others + "\n" + module([argument("a", dims="{?}, {?}")], body, [f"%{n - 1}"], [T])


@grows
def captured_values(n: int) -> str:
    """Return a loop that reads many values from outside of it."""
    adds = times(n, lambda i: f"%n{i} = stablehlo.add %n{i - 1}, %a{i} : {T}").replace("%n-1,", "%i,")
    body = (
        "%c = stablehlo.constant dense<0> : tensor<i32>\n%l = stablehlo.constant dense<5> : tensor<i32>\n"
        f"%o = stablehlo.constant dense<1> : tensor<i32>\n%0:2 = stablehlo.while(%k = %c, %i = %a0) : tensor<i32>, {T}"
        " cond {\n%p = stablehlo.compare LT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %p : tensor<i1>\n} do {\n"
        f"{adds}\n"
        f"%m = stablehlo.add %k, %o : tensor<i32>\nstablehlo.return %m, %n{n - 1} : tensor<i32>, {T}\n}}"
    )
    return module([argument(f"a{i}") for i in range(n)], body, ["%0#1"], [T])


@grows
def contracted_dimensions(n: int) -> str:
    """Return a product over many dimensions."""
    type_, dims = f"tensor<{'x'.join(['2'] * n)}x8xf32>", ", ".join(map(str, range(n)))
    body = (
        f"%0 = stablehlo.dot_general %a, %a, contracting_dims = [{dims}] x [{dims}] : ({type_}, {type_}) -> {T}\n"
        f"%1 = stablehlo.negate %0 : {T}"
    )
    return module([argument("a", type_, ", ".join(['{"x"}', *["{?}"] * n]))], body, ["%1"], [T])


@grows
def barriers(n: int) -> str:
    """Return a chain of ops with barriers between them."""
    body = times(
        n,
        lambda i: (
            f"%n{i} = stablehlo.negate {before(i)} : {T}\n"
            f"%{i} = sdy.propagation_barrier %n{i} allowed_direction=FORWARD : {T}"
        ),
    )
    return module([argument("a")], body, [f"%{n - 1}"], [T])


@grows
def attributes(n: int) -> str:
    """Return ops with many attributes that nothing knows."""
    notes = times(n, lambda i: f"note{i} = {i} : i64", ", ")
    body = f"%0 = stablehlo.negate %a {{{notes}}} : {T}\n%1 = stablehlo.negate %0 {{{notes}}} : {T}"
    return module([argument("a")], body, ["%1"], [T])


@grows
def idle_arguments(n: int) -> str:
    """Return a function with many arguments that it returns."""
    return module([argument(f"a{i}") for i in range(n)], "", names(n), [T] * n)


def _pad(low: int, high: int) -> str:
    type_ = f"tensor<{low + high + 8}xf32>"
    body = (
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%0 = stablehlo.pad %a, %c, low = [{low}], high = [{high}], interior = [0]"
        f" : ({VECTOR}, tensor<f32>) -> {type_}"
    )
    return module([argument("a", VECTOR, '{"x"}')], body, ["%0"], [type_])


@grows_by_number
def padding_before(n: int) -> str:
    """Return a tensor with padding before it."""
    return _pad(n, 0)


@grows_by_number
def padding_behind(n: int) -> str:
    """Return a tensor with padding behind it."""
    return _pad(0, n)


@grows_by_number
def padding_around(n: int) -> str:
    """Return a tensor with padding at both sides."""
    return _pad(n, n + 3)


def _window(type_: str, result: str, attributes: str) -> str:
    body = (
        '%c = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = "stablehlo.reduce_window"(%a, %c) ({\n'
        "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = stablehlo.add %p, %q : tensor<f32>\n"
        f"stablehlo.return %s : tensor<f32>\n}}) {{{attributes}}} : ({type_}, tensor<f32>) -> {result}"
    )
    return module([argument("a", type_, '{"x"}')], body, ["%0"], [result])


@grows_by_number
def window(n: int) -> str:
    """Return a large window."""
    return _window(f"tensor<{4 * n}xf32>", f"tensor<{3 * n + 1}xf32>", f"window_dimensions = array<i64: {n}>")


@grows_by_number
def stride(n: int) -> str:
    """Return windows that are far from each other."""
    attributes = f"window_dimensions = array<i64: 2>, window_strides = array<i64: {n}>"
    return _window(f"tensor<{8 * n}xf32>", VECTOR, attributes)


@grows_by_number
def dilation(n: int) -> str:
    """Return elements that are far from each other."""
    attributes = f"window_dimensions = array<i64: 1>, base_dilations = array<i64: {n}>"
    return _window(VECTOR, f"tensor<{7 * n + 1}xf32>", attributes)


@grows_by_number
def convolution(n: int) -> str:
    """Return a convolution with a large kernel, whose input is dilated."""
    input_, kernel, result = f"tensor<1x{2 * n}x4xf32>", f"tensor<{n}x4x4xf32>", f"tensor<1x{5 * n - 1}x4xf32>"
    body = (
        "%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[0, 0]],"
        " lhs_dilate = [3]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        f" : ({input_}, {kernel}) -> {result}"
    )
    return module([argument("a", input_, '{}, {"x"}, {}'), f"%k: {kernel}"], body, ["%0"], [result])


@grows_by_number
def shape(n: int) -> str:
    """Return large tensors."""
    type_ = f"tensor<{n}x8xf32>"
    body = f"%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : ({type_}, {type_}) -> {T}"
    return module([argument("a", type_)], body, ["%0"], [T])


@grows_by_number
def far_slice(n: int) -> str:
    """Return a slice far from the start."""
    type_ = f"tensor<{4 * n}xf32>"
    body = f"%0 = stablehlo.slice %a [{3 * n - 8}:{3 * n}] : ({type_}) -> {VECTOR}"
    return module([argument("a", type_, '{"x"}')], body, ["%0"], [VECTOR])
