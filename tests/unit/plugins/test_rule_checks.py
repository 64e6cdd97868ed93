"""Every rule is checked against the op it is for, whoever gave it."""

import warnings

import pytest

import shardy_py as sdy
from shardy_py.indexing import AffineMap
from shardy_py.ir import OpaqueType, Program, tensor
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.derivation import rule_from_indexing_maps
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.testing import make_op

MATRIX = sdy.OpShardingRule((8, 4), (((0,), (1,)),), (((0,), (1,)),))
REDUCED = sdy.OpShardingRule((8, 4), (((0,), (1,)),), (((0,),),), reduction_factors=(1,))


def rule_of(rule, operands=((8, 4),), results=((8, 4),), **settings):
    """Return the rule that a registry finds for an op of the given shapes."""
    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule=rule, **settings)
    return sdy.Registry.of([toy]).get_sharding_rule(make_op("toy.f", operands, results))


def built(*factors, **settings):
    """Return a rule function that adds factors with the builder."""

    def rule(op):
        builder = sdy.OpShardingRuleBuilder.for_op(op)
        for operand_dims, result_dims, size, *kind in factors:
            builder.add_factor(operand_dims, result_dims, size, **(kind[0] if kind else {}))
        return builder.build()

    return rule


BROKEN = {
    "a size of 1 for larger dimensions": (built(([0], [0], 1), ([1], [1], 4)), "dimension 0 of operand 0 has size 8"),
    "a flag as a size": (built(([0], [0], True), ([1], [1], 4)), "dimension 0 of operand 0 has size 8"),
    "a kind as a string": (built(([0], [0], 8), ([1], [None], 4, {"kind": "reduction"})), "not a valid kind of factor"),
    "a size that is not the dimension's": (built(([0], [0], 5), ([1], [1], 4)), "dimension 0 of operand 0 has size 8"),
    "size 0": (built(([0], [0], 0), ([1], [1], 4)), "its factors i=0"),
    "a negative size": (built(([0], [0], -8), ([1], [1], 4)), "negative size -8"),
    "a size that is no integer": (built(([0], [0], 8.0), ([1], [1], 4)), "8.0, not an integer"),
    "a negative dimension": (built(([-1], [-1], 4)), "operand 0 has no dimension -1"),
    "a dimension there is not": (built(([2], [1], 4)), "operand 0 has no dimension 2"),
    "a dimension twice": (built(([0], [0], 8), ([0], [0], 8), ([1], [1], 4)), "i=8 * j=8"),
    "a factor that nothing has": (built(([None], [None], 8)), "isn't used"),
    "a reduced factor in a result": (built(([0], [0], 8, {"kind": sdy.FactorKind.REDUCTION})), "cannot be in result"),
    "a gathered size of no dimension": (
        built(([0], [0], 6, {"kind": sdy.FactorKind.NEED_REPLICATION}), ([1], [1], 4)),
        "its factors i=6",
    ),
    "too few operands": (lambda op: sdy.OpShardingRule((8, 4), (), (((0,), (1,)),)), "the rule has 0 operands"),
    "a wrong rank": (lambda op: sdy.OpShardingRule((8,), (((0,),),), (((0,),),)), "rank must match: 1 != 2"),
    "a factor of two kinds": (
        lambda op: sdy.OpShardingRule((8, 4), MATRIX.operand_mappings, MATRIX.result_mappings, (), (1,), (1,)),
        "only be in one of",
    ),
    "a kind of no factor": (
        lambda op: sdy.OpShardingRule((8, 4), MATRIX.operand_mappings, MATRIX.result_mappings, (), (7,)),
        "less than 2, got: 7",
    ),
    "a factor twice in a tensor": (
        lambda op: sdy.OpShardingRule((8,), (((0,), (0,)),), (((0,), (0,)),)),
        "cannot reuse factors",
    ),
    "lists for tuples": (lambda op: sdy.OpShardingRule([8, 4], [[[0], [1]]], [[[0], [1]]]), "another type"),
    "no rule at all": (lambda op: "i j -> i j", "not an OpShardingRule"),
    "a combiner of no reduction": (
        built(([0], [0], 8, {"combiner": "max"}), ([1], [1], 4)),
        "combines by max, but is not a reduction",
    ),
    "an unknown combiner": (
        built(([0], [0], 8), ([1], [None], 4, {"kind": sdy.FactorKind.REDUCTION, "combiner": "sum"})),
        "cannot combine by 'sum'",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_does_not_fit_is_an_error_with_op_shapes_and_owner(name):
    """What no op of these shapes can have is refused; the error names the op, its shapes and whose rule it is."""
    function, message = BROKEN[name]
    results = [(8,)] if "kind as a string" in name or "unknown combiner" in name else [(8, 4)]
    with pytest.raises(sdy.RuleError) as caught:
        rule_of(function, results=results)
    first = caught.value.diagnostics[0]
    assert message in str(caught.value)
    assert first.op == "toy.f"
    assert "dialect 'toy'" in first.hint


def test_the_error_shows_rule_and_shapes():
    """The excerpt of a rule that does not fit has the rule and the shapes."""
    with pytest.raises(sdy.RuleError) as caught:
        rule_of(built(([0], [0], 5), ([1], [1], 4)))
    shown = caught.value.diagnostics[0].excerpt
    assert shown == "<([i, j])->([i, j]) {i=5, j=4}>\noperands 8x4; results 8x4"


@pytest.mark.parametrize(
    ("rule", "operands", "results", "expected"),
    [
        (built(([0], [0], 8)), [(8, 4)], [(8, 4)], "<([i, j])->([i, k]) {i=8, j=1, k=1}>"),
        (
            built(([0], [0], 8), ([1], [1], 3, {"kind": sdy.FactorKind.PERMUTATION})),
            [(8, 4)],
            [(8, 3)],
            "<([i, j])->([i, j]) {i=8, j=3} permutation={j}>",
        ),
        (built(([], [0], 8)), [], [(8,)], "<()->([i]) {i=8}>"),
        (built(([0], [0], 0)), [(0,)], [(0,)], "<([i])->([i]) {i=0}>"),
        (
            "i k, k j -> i j",
            [(8, 4), (4, 2)],
            [(8, 2)],
            "<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}>",
        ),
    ],
)
def test_a_rule_that_fits_is_taken(rule, operands, results, expected):
    """Dimensions without a factor, sizes that may differ, no operands and empty tensors are no errors."""
    marks = {"reduction": "k"} if isinstance(rule, str) else {}
    assert str(rule_of(rule, operands, results, **marks)) == expected


def test_factors_of_any_size_are_taken_where_the_definition_says_so():
    """With any_sizes nobody compares sizes, but everything else is checked."""
    odd = built(([0], [0], 5), ([1], [1], 4))
    assert rule_of(odd, any_sizes=True).factor_sizes == (5, 4)
    with pytest.raises(sdy.RuleError, match="cannot be in result"):
        rule_of(built(([0], [0], 5, {"kind": sdy.FactorKind.REDUCTION})), any_sizes=True)


def test_the_protocol_and_indexing_maps_are_checked_like_functions():
    """It makes no difference where a rule comes from."""

    class Definition:
        def get_sharding_rule(self, op):
            return REDUCED

    maps = [AffineMap.parse("(d0, d1) -> (d0, d1)"), AffineMap.parse("(d0, d1) -> (d0, d1)")]
    assert rule_of(Definition(), results=[(8,)]) == REDUCED
    with pytest.raises(sdy.RuleError, match="rank must match"):
        rule_of(Definition())
    with pytest.raises(sdy.RuleError, match="dimension 1 of result 0 has size 4"):
        rule_of(lambda op: rule_from_indexing_maps(maps, [(8, 6), (8, 6)], num_results=1))


def test_rules_on_ops_are_checked_as_the_reference_does():
    """A rule that stands on an op may have any sizes, but no factor twice, no wrong rank; other things are no rules."""
    registry = sdy.Registry.of([])

    def found(written):
        op = make_op("toy.f", [(8, 4)], [(8, 4)], {"sdy.sharding_rule": written})
        return registry.get_sharding_rule(op)

    sized = parse_op_sharding_rule("<([i, j])->([i, j]) {i=3, j=5}, custom>")
    assert found(sized) is sized
    for text in ("<([i, i])->([i, i]) {i=8}>", "<([i])->([i]) {i=8}>", "<([i, j])->([i, j]) {i=8, j=4} reduction={j}>"):
        with pytest.raises(sdy.RuleError) as caught:
            found(parse_op_sharding_rule(text))
        assert caught.value.diagnostics[0].op == "toy.f"
    with pytest.raises(sdy.RuleError, match="not a sharding rule"):
        found("i j -> i j")


def test_a_rule_is_checked_once_per_distinct_shapes(monkeypatch):
    """What is known to fit is not checked again, in no program."""
    from shardy_py.plugins import rule_checks as module

    asked = []
    monkeypatch.setattr(module, "rule_problems", lambda *shapes, **settings: asked.append(shapes) or ())
    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule="i j -> i j")
    registry, program = sdy.Registry.of([toy]), Program()
    source = Op(program, "toy.source", [], [tensor(8, 4)]).result
    for _ in range(5):
        registry.get_sharding_rule(Op(program, "toy.f", [source], [tensor(8, 4)]))
    assert len(asked) == 1


# What Elementwise alone says.


def elementwise(operands, results):
    """Return the rule of an elementwise op without one."""
    toy = sdy.Dialect("toy")
    toy.op("toy.add", traits=[sdy.Elementwise])
    return sdy.Registry.of([toy]).get_sharding_rule(make_op("toy.add", operands, results))


@pytest.mark.parametrize(
    ("operands", "results"),
    [
        ([(8, 16), (16, 4)], [(8, 4)]),
        ([(8, 16), (16,)], [(8, 16)]),
        ([(8, 16), ()], [(8, 16)]),
        ([(8, 16)], [(8, 1)]),
    ],
)
def test_elementwise_without_a_rule_needs_equal_shapes(operands, results):
    """Shapes that differ are an error that names the helper for broadcasts."""
    with pytest.raises(sdy.RuleError, match=r"sdy\.rules\.broadcast") as caught:
        elementwise(operands, results)
    assert caught.value.diagnostics[0].op == "toy.add"


def test_elementwise_without_a_rule_shards_all_tensors_alike():
    """Equal shapes have one factor per dimension; values that are no tensors have no part."""
    assert str(elementwise([(8, 4), (8, 4)], [(8, 4)])) == "<([i, j], [i, j])->([i, j]) {i=8, j=4}>"
    token = OpaqueType("!toy.token")
    assert str(elementwise([(8,), token], [(8,)])) == "<([i], [])->([i]) {i=8}>"
    assert elementwise([token], [token]) is None


# What is most likely a mistake.


def notices(rule, **marks):
    """Return the notices of a dialect with one op; each was a warning of Python, too."""
    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule=rule, **marks)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registry = sdy.Registry.of([toy])
    assert [str(item.message) for item in caught] == [item.show("warning") for item in registry.notices]
    assert all(item.category is sdy.RuleWarning for item in caught)
    return registry.notices


def test_a_factor_that_only_operands_have_is_warned_of():
    """Loading the dialect warns of a factor that no result has and no mark speaks of, with the marks to choose from."""
    (notice,) = notices("i k, k j, n -> i j")
    assert notice.code == "unmarked-factor"
    assert notice.op == "toy.f"
    assert "factors k, n" in notice.message
    assert all(mark in notice.hint for mark in ('reduction="k, n"', "need_replication=", "pass_through=", "'toy'"))
    assert len(notices("... d -> d")) == 1


@pytest.mark.parametrize(
    "marks",
    [
        {"reduction": "k"},
        {"reduction": "k:max"},
        {"reduction": "k:not"},
        {"need_replication": "k"},
        {"pass_through": "k"},
        {"permutation": "k"},
    ],
)
def test_a_mark_silences_the_warning(marks):
    """Each mark says what becomes of the factor."""
    assert notices("i k, k j -> i j", **marks) == ()


def test_the_notices_are_among_the_warnings_of_a_run():
    """Result.warnings has them, whether the registry is given or found."""
    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule="i k -> i")
    with pytest.warns(sdy.RuleWarning, match="unmarked-factor"):
        registry = sdy.Registry.of([toy])
    from shardy_py.ir import Builder

    b = Builder()
    with b.function("main", [tensor(8, 4)]) as (x,):
        b.return_(b.op("toy.f", [x], [tensor(8)]))
    text = """func.func @main(%x: tensor<8x4xf32>) -> tensor<8xf32> {
      %0 = "toy.f"(%x) : (tensor<8x4xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    result = sdy.propagate(text, {"a": 2}, in_shardings={0: ("a", None)}, registry=registry)
    assert [item.code for item in result.warnings] == ["unmarked-factor"]


def test_a_rule_that_a_function_returns_is_warned_of_once():
    """A factor without a mark is told at the function, once for all shapes; a mark silences it there, too."""

    def forgotten(op):
        return sdy.rule("i k, k j -> i j")

    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule=forgotten)
    toy.op("toy.g", rule=lambda op: sdy.rule("i k, k j -> i j", pass_through="k"))
    registry = sdy.Registry.of([toy])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for size in (2, 3):
            for name in ("toy.f", "toy.g"):
                registry.get_sharding_rule(make_op(name, [(8, 4), (4, size)], [(8, size)]))
    (warning,) = caught
    assert warning.category is sdy.RuleWarning
    assert "'toy.f' op: no result has the factor k" in str(warning.message)
    assert warning.filename.endswith("test_rule_checks.py")
    assert warning.lineno == forgotten.__code__.co_firstlineno


def test_a_rule_function_must_not_change_types():
    """A type that a rule function gives to a value of its op is taken back, and an error."""

    def change(op):
        op.result.type = tensor(4)

    toy = sdy.Dialect("toy")
    toy.op("toy.f", rule=change)
    op = make_op("toy.f", [(8, 4)], [(8, 4)])
    with pytest.raises(sdy.RuleError, match="changed its op"):
        sdy.Registry.of([toy]).get_sharding_rule(op)
    assert op.result.shape == (8, 4)
