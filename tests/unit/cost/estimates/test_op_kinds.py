"""Kinds of ops, as the estimate asks for them."""

from shardy_py.cost.estimates.op_kinds import OpKinds
from shardy_py.cost.machines.profile import NO_PROFILE
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plugins import ConstantLike, CostOpInterface, Dialect, Elementwise, Registry


class WindowCost(CostOpInterface):
    def get_windows(self, op):
        return ()


def _kinds():
    toy = Dialect("toy")
    toy.op("toy.add", traits=[Elementwise])
    toy.op("toy.window", cost=WindowCost())
    toy.op("toy.either", traits_of=lambda op: [ConstantLike] if "value" in op.attributes else [])
    return OpKinds(Registry.build([("the test", toy)]), NO_PROFILE)


def _op(name, attributes=None):
    return Op(Program(), name, (), (), attributes or {})


def test_ops_of_a_name_are_of_one_kind():
    """Attributes make no other kind."""
    kinds = _kinds()
    add = kinds.of(_op("toy.add"))
    assert add is kinds.of(_op("toy.add", {"note": 1}))
    assert ((Elementwise in add.traits), (Elementwise in kinds.of(_op("toy.window")).traits)) == (True, False)


def test_traits_that_depend_on_the_op_make_kinds_of_their_own():
    """Other traits are another kind, equal ones the same."""
    kinds = _kinds()
    plain, constant = kinds.of(_op("toy.either")), kinds.of(_op("toy.either", {"value": 1}))
    assert ((ConstantLike in plain.traits), (ConstantLike in constant.traits)) == (False, True)
    assert kinds.of(_op("toy.either", {"value": 2})) is constant


def test_only_what_a_dialect_writes_is_asked_for():
    """Defaults of the protocol need no call."""
    kinds = _kinds()
    window, add, gather = kinds.of(_op("toy.window")), kinds.of(_op("toy.add")), kinds.of(_op("sdy.all_gather"))
    assert (
        window.implements("get_windows"),
        window.implements("get_collective"),
        window.implements("get_equal_operand"),
        window.may_communicate,
    ) == (True, False, False, True)
    assert (add.implements("get_windows"), add.may_communicate) == (False, False)
    assert (gather.may_communicate, gather.is_shardy, gather.is_collective) == (True, True, True)
