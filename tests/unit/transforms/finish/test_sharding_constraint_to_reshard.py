"""A constraint becomes a reshard, whatever it is on."""

from shardy_py.ir import Builder, OpaqueType, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.sharding_constraint_to_reshard import ShardingConstraintToReshardPass
from tests.unit.transforms.finish.reshards.reshard_toy import run


def test_a_constraint_becomes_a_reshard_with_its_attributes_and_users():
    """The reshard stands where the constraint stood and has its sharding, other attributes and users."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [tensor(8)]) as (x,):
        y = b.constrain(x, '[{"x"}]')
        y.owner.attributes["toy.note"] = "kept"
        b.return_(b.op("toy.neg", [y], [tensor(8)]), y)
    assert run(ShardingConstraintToReshardPass(), b) == [
        '%0 = reshard %arg0 [{"x"}]',
        "%1 = neg %0",
        "func.return %1, %0",
    ]
    (op,) = [op for op in b.program.walk() if op.name == "sdy.reshard"]
    assert op.attributes["toy.note"] == "kept"
    assert str(op.attributes["sharding"]) == '<@mesh, [{"x"}]>'


def test_a_constraint_on_a_token_becomes_a_reshard():
    """Tokens are constrained to replication over a mesh; that is kept."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [OpaqueType("!toy.token")]) as (token,):
        b.return_(b.constrain(token, "[]"))
    assert run(ShardingConstraintToReshardPass(), b) == ["%0 = reshard %arg0 []", "func.return %0"]
