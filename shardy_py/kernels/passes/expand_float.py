"""Functions of ``f32`` as rational functions."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.dialects import math as math_dialect

from shardy_py.kernels.passes.base import KernelContext, replace, walk_ops
from shardy_py.kernels.passes.scalar_terms import ScalarTerm
from shardy_py.values import frozen

# The rational functions of XLA's EmitFastTanh and of its error function, which are Eigen's: coefficients of even
# powers, the highest one first.
_TANH_LIMIT = 7.90531110763549805
_TANH_OVER = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
    *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
)
_TANH_UNDER = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_IS_LINEAR, _TANH_IS_ONE = 0.0004, 20.0
_ERF_LIMIT = 3.832506856900711
_ERF_OVER = (
    *(0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145),
    1.128379143519084,
)
_ERF_UNDER = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667),
    *(0.11098505178285362, 0.49746925110067538, 1.0),
)


@frozen
class ExpandFloat:
    """Compute ``tanh`` and ``erf`` of ``f32`` by sums, products and a division."""

    name: str = "expand-float"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if not op.results or op.results[0].type != builtin.f32:
                continue
            if isinstance(op, math_dialect.TanhOp):
                replace(op, [tanh(ScalarTerm(op.operand, op)).value])
            elif isinstance(op, math_dialect.ErfOp):
                replace(op, [erf(ScalarTerm(op.operand, op)).value])


def _clamped(x: ScalarTerm, limit: float) -> ScalarTerm:
    return x.most(-limit).least(limit)


def tanh(x: ScalarTerm) -> ScalarTerm:
    """Return the hyperbolic tangent; of small numbers themselves, of large ones 1."""
    near = _clamped(x, _TANH_LIMIT)
    square = near * near
    found = near * square.polynomial(_TANH_OVER) / square.polynomial(_TANH_UNDER)
    amount = x.math("absf")
    found = x.where(amount.compare("olt", _TANH_IS_LINEAR), found)
    one = ScalarTerm(x.of(-1.0), x.before).where(x.compare("olt", 0.0), 1.0)
    return one.where(amount.compare("ogt", _TANH_IS_ONE), found)


def erf(x: ScalarTerm) -> ScalarTerm:
    """Return the error function."""
    near = _clamped(x, _ERF_LIMIT)
    square = near * near
    return near * square.polynomial(_ERF_OVER) / square.polynomial(_ERF_UNDER)
