"""The registry answers all questions about ops."""

import gc
import random
import weakref

import pytest

from shardy_py.errors import PluginError, RuleError
from shardy_py.ir import Op, Program, tensor
from shardy_py.plugins import (
    ConstantLike,
    Dialect,
    Elementwise,
    LoopDataFlow,
    Pure,
    Registry,
    RuleOptions,
)
from shardy_py.sharding.rule import OpShardingRule


def vector_rule(size, *, factors=1):
    """Return a rule of an op with one vector result."""
    return OpShardingRule((size,) * factors, (), (((0,),),))


def make_op(name="toy.f", *, program=None, size=8, **attributes):
    """Return an op with one vector result."""
    return Op(program or Program(), name, [], [tensor(size)], attributes)


def test_traits_come_from_the_name_from_globs_and_from_predicates():
    """The traits of an op are the union of all three sources."""
    toy = Dialect("toy")
    toy.op("toy.f", traits=[Elementwise], traits_of=lambda op: [ConstantLike] if op.attributes.get("c") else [])
    toy.op("toy.*", traits=[Pure])
    registry = Registry.of([toy])
    assert registry.get_traits(make_op()) == {Elementwise, Pure}
    assert registry.get_traits(make_op(c=True)) == {Elementwise, Pure, ConstantLike}
    assert registry.has_trait(make_op("toy.other"), Pure)
    assert registry.get_traits(make_op("other.f")) == frozenset()


class LocalForm:
    """A local form for some ops."""

    def localize(self, op, shard):
        """Return the op on its shards."""
        return shard.copy()

    def applies(self, op):
        """Return what the op says, as it is."""
        return op.attributes.get("known", False)


def test_a_local_form_may_be_for_some_ops_only():
    """The others have none, and an answer that is no truth value is an error of the plugin."""
    toy = Dialect("toy")
    toy.op("toy.f", local=LocalForm())
    registry = Registry.of([toy])
    assert registry.get_local(make_op(known=True)) is not None
    assert registry.get_local(make_op()) is None
    with pytest.raises(PluginError, match=r"(?s)applies.*returned 3, not a bool"):
        registry.get_local(make_op(known=3))


def test_an_unknown_op_has_no_rule_and_no_edges():
    """Ops nobody defined get the answers that change nothing."""
    registry = Registry.of()
    op = make_op()
    assert registry.get_sharding_rule(op) is None
    assert registry.get_data_flow(op) is None
    assert registry.get_sharding_attribute(op) == "sdy.sharding"


def test_what_a_definition_says_is_what_the_registry_answers():
    """Data flow and sharding attribute are those of the definition."""

    class Flow(LoopDataFlow):
        pass

    flow = Flow()
    toy = Dialect("toy")
    toy.op("toy.f", data_flow=flow, sharding_attribute="out_sharding")
    registry = Registry.of([toy])
    assert registry.find("toy.f").data_flow is flow
    assert type(registry.get_data_flow(make_op())).__name__ == "Flow"
    assert registry.get_sharding_attribute(make_op()) == "out_sharding"
    assert registry.names_with_sharding_attribute({"toy.f", "toy.g"}, {"out_sharding"}) == {"toy.f"}
    assert registry.names_with_sharding_attribute({"toy.f", "toy.g"}, {"sdy.sharding"}) == {"toy.g"}


def test_a_rule_is_made_once_for_ops_that_look_the_same():
    """Name, types and attributes decide whether a rule is made anew."""
    calls = []
    toy = Dialect("toy")

    @toy.op("toy.f")
    def rule(op):
        calls.append(op)
        return vector_rule(op.results[0].shape[0])

    registry, program = Registry.of([toy]), Program()
    same = [make_op(program=program, a=(1, 2), b={"c": [1]}) for _ in range(3)]
    assert len({id(registry.get_sharding_rule(op)) for op in same}) == 1
    assert len(calls) == 1
    for other in (make_op(program=program, a=(1, 3)), make_op(program=program, size=4), make_op(program=program)):
        registry.get_sharding_rule(other)
    assert len(calls) == 4


def test_attributes_that_compare_equal_but_differ_are_kept_apart():
    """1, 1.0 and true are different attributes although Python calls them equal."""
    toy = Dialect("toy")
    toy.op("toy.f", rule=lambda op: vector_rule(8) if op.attributes["a"] is True else None)
    registry, program = Registry.of([toy]), Program()
    assert registry.get_sharding_rule(make_op(program=program, a=1)) is None
    assert registry.get_sharding_rule(make_op(program=program, a=True)) == vector_rule(8)
    assert registry.get_sharding_rule(make_op(program=program, a=1.0)) is None


def test_a_frontend_may_give_the_attribute_key():
    """The property `key` of an attribute mapping replaces a look at the attributes; equal types are one object then."""

    class Keyed(dict):
        key = "the same for all"

    calls = []
    toy = Dialect("toy")
    toy.op("toy.f", rule=calls.append)
    registry, program, type_ = Registry.of([toy]), Program(), tensor(8)
    for number in range(2):
        registry.get_sharding_rule(Op(program, "toy.f", [], [type_], Keyed(a=number)))
    assert len(calls) == 1


def test_a_contextual_rule_is_made_for_every_op():
    """A rule that looks around its op is never reused."""
    calls = []
    toy = Dialect("toy")
    toy.op("toy.f", rule=calls.append, contextual=True)
    registry, program = Registry.of([toy]), Program()
    for _ in range(2):
        registry.get_sharding_rule(make_op(program=program))
    assert len(calls) == 2


def test_memoised_rules_go_with_their_program():
    """The registry keeps nothing of a program that is gone."""
    toy = Dialect("toy")
    toy.op("toy.f", rule=lambda op: vector_rule(8))
    registry, program = Registry.of([toy]), Program()
    registry.get_sharding_rule(make_op(program=program))
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_the_rule_on_the_op_wins():
    """A rule written on an op replaces that of its definition, and serves ops without definition."""
    toy = Dialect("toy")
    toy.op("toy.f", rule=lambda op: vector_rule(8))
    registry, program = Registry.of([toy]), Program()
    written = vector_rule(4, factors=2)
    for name in ("toy.f", "toy.unknown"):
        op = Op(program, name, [], [tensor(8)], {"sdy.sharding_rule": written})
        assert registry.get_sharding_rule(op) is written
    assert registry.get_sharding_rule(make_op(program=program)) == vector_rule(8)


def test_rule_options_reach_the_functions_that_take_them():
    """A second parameter gets the options of the registry; other registries keep theirs."""
    toy = Dialect("toy")
    toy.op("toy.f", rule=lambda op, options: None if options.conservative else vector_rule(8))
    registry = Registry.of([toy])
    conservative = registry.with_options(RuleOptions(conservative=True))
    op = make_op()
    assert registry.get_sharding_rule(op) == vector_rule(8)
    assert conservative.get_sharding_rule(op) is None
    assert registry.with_options(registry.options) is registry


def test_an_object_with_get_sharding_rule_is_a_rule():
    """A definition takes anything that implements `ShardingRuleOpInterface`."""

    class Rule:
        def get_sharding_rule(self, op):
            return vector_rule(8)

    toy = Dialect("toy")
    toy.op("toy.f", rule=Rule())
    assert Registry.of([toy]).get_sharding_rule(make_op()) == vector_rule(8)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda op: 1 // 0, "raised ZeroDivisionError"),
        (lambda op: "i -> i", "not an OpShardingRule"),
        (lambda op: OpShardingRule((), (), ()), "the rule has 0 operands and 0 results, the op 0 and 1"),
    ],
)
def test_a_failing_rule_function_is_an_error_that_names_op_and_owner(rule, message):
    """Whatever a rule function does wrong becomes a RuleError with the op and the dialect to blame."""
    toy = Dialect("toy")
    toy.op("toy.f", rule=rule)
    with pytest.raises(RuleError, match=message) as error:
        Registry.of([toy]).get_sharding_rule(make_op())
    assert error.value.diagnostics[0].op == "toy.f"
    assert "dialect 'toy'" in error.value.diagnostics[0].hint


def test_all_clashes_are_named_with_both_owners():
    """Ops that two dialects define are all listed, each with the names of both."""
    dialects = [Dialect("one"), Dialect("two")]
    for dialect in dialects:
        dialect.op("toy.f")
        dialect.op("toy.g")
    with pytest.raises(PluginError) as error:
        Registry.of(dialects)
    assert [item.op for item in error.value.diagnostics] == ["toy.f", "toy.g"]
    assert all("dialect 'one' and by dialect 'two'" in item.message for item in error.value.diagnostics)


def test_the_order_of_dialects_does_not_matter():
    """Registries of the same dialects in any order are equal."""
    dialects = [Dialect(name) for name in "abcd"]
    for dialect in dialects:
        dialect.op(f"{dialect.name}.f", traits=[Pure])
        dialect.op(f"*.{dialect.name}", traits=[Elementwise])
    first = Registry.of(dialects)
    for seed in range(5):
        random.Random(seed).shuffle(dialects)
        assert Registry.of(dialects) == first
    assert first.ops == ("a.f", "b.f", "c.f", "d.f")


def test_answers_about_names_are_remembered_up_to_a_limit(monkeypatch):
    """What is remembered for one set of names and traits never answers for another."""
    monkeypatch.setattr("shardy_py.plugins.registry._MANY_ANSWERS", 3)
    toy = Dialect("toy")
    toy.op("toy.f", traits=[Pure])
    toy.op("toy.g", traits=[Elementwise], data_flow=LoopDataFlow())
    registry = Registry.of([toy])
    for _ in range(3):
        assert registry.names_with_traits(["toy.f", "toy.g"], frozenset([Pure])) == {"toy.f"}
        assert registry.names_with_traits(["toy.g", "toy.f"], frozenset([Pure, Elementwise])) == {"toy.f", "toy.g"}
        assert registry.names_with_traits(["toy.g"], frozenset([Pure])) == set()
        assert registry.names_with_data_flow({"toy.f", "toy.g"}) == {"toy.g"}
        assert registry.names_with_data_flow({"toy.f"}) == set()
        assert len(registry._names) <= 3
