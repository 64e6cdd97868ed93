"""The page of PyTorch's operators: which have a rule, and why the others have none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "torch-operators.md"
_RULE, _ELEMENTS, _LISTS = "a rule", "elements", "lists"
_WITHOUT: Mapping[str, tuple[str, ...]] = {
    "sparse tensors, whose elements have no places that a mesh could split": (
        *("sparse", "coo", "csr", "csc", "bsr", "bsc", "crow_", "col_", "row_", "^_?indices", "^_?values", "_coalesce"),
        *("spdiags", "spsolve", "hspmm", "semi_structured", "cslt", "_to_dense"),
    ),
    "nested tensors, whose rows have sizes of their own": (
        *("nested", "jagged", "padded_dense", "padded_tensor", "pack_padded", "_packed"),
    ),
    "tensors of quantized types; `quantized_decomposed` has rules": (
        *("quantize_per", "dequantize", "quantized", "int_repr", "q_per_channel", "make_per_", "int4pack"),
        *("affine_quantized", "reorder", "pack_4bit_weight"),
    ),
    "kernels of one kind of device, or inner parts, of operators that have rules": (
        *("mkl", "mps", "miopen", "cudnn", "nnpack", "slow_conv", "conv_depthwise", "_thnn", "triton", "_overrideable"),
        *("_flash_att", "_efficient_att", "_cpu_fallback", "batch_norm_", "_transform_bias", "_native_multi_head"),
        *("_transformer_encoder", "linear_backward", "matmul_backward", "max_pool2d_backward", "_fused_dropout"),
        *("scaled_grouped", "_helper", "_impl$", "native_norm", "with_same_feature"),
    ),
    "results whose size depends on data": ("nonzero", "masked_select", "unique", "bincount"),
    "generators of random numbers as an argument": ("generator", "philox"),
    "forward-mode derivatives": ("jvp", "_fw_primal", "make_dual"),
    "places in memory, and storages": (
        *("as_strided", "resize", "^set$", "slice_inverse", "reshape_alias", "copy_from", "pin_memory", "from_file"),
        *("lazy_clone", "efficientzerotensor"),
    ),
    "tests of PyTorch itself, assertions and tokens": (
        *("_test", "assert", "constrain", "foobar", "dep_token", "is_a(ny|ll)_true", "embedding_renorm"),
    ),
    "lists of tensors with one result for all": ("_amp_foreach",),
}
"""The reason why operators have no rule, to patterns in their names; the first one counts."""


def overloads() -> dict[str, str]:
    """Return each overload that makes new tensors, with what places its tensors: a rule, its parts, or nothing.

    Overloads that write to operands become those that do not, and those that PyTorch itself takes apart in an export
    are left out unless they have a rule.
    """
    import torch

    from shardy_dialects.aten import aten
    from shardy_py.torch.frontend import foreach

    ruled = {item.name for item in aten.definitions}
    states: dict[str, str] = {}
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        target = getattr(getattr(torch.ops.aten, base, None), overload or "default", None) if space == "aten" else None
        if target is None or not _makes_tensors(target._schema):
            continue
        if str(target) in ruled:
            states[str(target)] = _RULE
        elif any(tag.name == "pointwise" for tag in target.tags):
            states[str(target)] = _ELEMENTS
        elif foreach.rewrite_of(str(target)) is not None:
            states[str(target)] = _LISTS
        elif not target._can_decompose():
            states[str(target)] = _reason(base, overload)
    return states


def _makes_tensors(schema: Any) -> bool:
    return not schema.is_mutable and any("Tensor" in str(item.type) for item in schema.returns)


def _reason(base: str, overload: str) -> str:
    names = (base, f"{base}.{overload}")
    reasons = (why for why, patterns in _WITHOUT.items() if any(map(re.compile("|".join(patterns)).search, names)))
    return next(reasons, "not yet")


def page() -> str:
    """Return the page."""
    import torch

    states = overloads()
    by_state: dict[str, list[str]] = {}
    for name, state in states.items():
        by_state.setdefault(state, []).append(name.removeprefix("aten."))
    reasons = [why for why in (*_WITHOUT, "not yet") if why in by_state]
    without = sum(len(by_state[why]) for why in reasons)
    version = torch.__version__.partition("+")[0]
    lines = [
        "# Operators of PyTorch",
        "",
        f"The overloads of PyTorch {version} that make new tensors: {len(states)}, of which {without} have no rule. An",
        "overload that writes to its operands counts as the one that does not, and one that an export takes apart",
        "counts only if it has a rule. Names are without `.default`. Written by `python -m tests.docs`.",
        "",
        f"## With a rule: {len(by_state[_RULE])}",
        "",
        *_paragraph(by_state[_RULE]),
        "",
        f"## By their elements: {len(by_state[_ELEMENTS])}",
        "",
        "Operators with the tag `pointwise`, those of users, too: all tensors are sharded alike.",
        "",
        *_paragraph(by_state[_ELEMENTS]),
        "",
        f"## One op for each tensor of a list: {len(by_state.get(_LISTS, ()))}",
        "",
        *_paragraph(by_state.get(_LISTS, ())),
        "",
        f"## Without a rule: {without}",
        "",
        "Their tensors are whole, with a warning; under `strict` they are an error.",
        "[Add a rule](../contributing/add-a-rule.md) where one is missing.",
    ]
    for why in reasons:
        lines += ["", f"### {why[0].upper()}{why[1:]}: {len(by_state[why])}", "", *_paragraph(by_state[why])]
    return "\n".join(lines) + "\n"


def _paragraph(names: Iterable[str]) -> list[str]:
    """Return names as code, in lines of a readable length."""
    lines = [""]
    for name in sorted(names):
        item = f"`{name.removesuffix('.default')}`"
        if len(lines[-1]) + len(item) > 115:
            lines.append("")
        lines[-1] += f" {item}" if lines[-1] else item
    return lines
