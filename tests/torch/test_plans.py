"""Plans that Hugging Face ships, from the first columnwise entry of each block."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import Any

import pytest
import torch

import shardy_py as sdy

transformers = pytest.importorskip("transformers", reason="the plans are those of Hugging Face")

pytestmark = pytest.mark.torch
ALL = bool(os.environ.get("SHARDY_ALL_PROGRAMS"))
FAMILIES = [
    "apertus",
    "arcee",
    "aria_text",
    "axk2",
    "bailing_hybrid",
    "beam",
    "cohere",
    "cohere2",
    "cohere2_moe",
    "cwm",
    "deepseek_v2",
    "deepseek_v32",
    "dots3_note_text",
    "ernie4_5",
    "ernie4_5_moe",
    "esmc",
    "eurobert",
    "exaone4",
    "exaone_moe",
    "flint",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gemma4_text",
    "gemma4_unified_text",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "llama",
    "qwen2",
]
SIZES = {
    **{"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "max_position_embeddings": 64},
    **{"use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_experts": 4},
    **{"num_local_experts": 4, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 64},
    "num_experts_per_tok": 2,
}
STYLES = ("colwise", "rowwise")


def _exported(family: str) -> tuple[Any, dict[str, str]]:
    """Return a tiny model of a family, exported on the device meta, and its plan by pattern."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    config = getattr(transformers, CONFIG_MAPPING_NAMES[family])(**SIZES)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config).eval()
        tokens = torch.zeros(2, 8, dtype=torch.int64)
    plan = {pattern: style for pattern, style in config.base_model_tp_plan.items() if style in STYLES}
    return torch.export.export(model, (tokens,)).run_decompositions({}), plan


@pytest.mark.parametrize("family", FAMILIES if ALL else ("arcee", "cohere", "gemma2"))
def test_the_plan_of_a_family_follows(family: str) -> None:
    """All columnwise and rowwise entries follow from the first columnwise entry of each block."""
    program, plan = _exported(family)
    names = [item.target for item in program.graph_signature.input_specs if item.target]
    modules = [name.removesuffix(".weight") for name in names if name.endswith(".weight")]
    want = {module: style for pattern, style in plan.items() for module in modules if fnmatchcase(module, pattern)}
    by_layer: dict[str, Any] = {}
    for pattern, style in plan.items():
        if style == "colwise" and any(fnmatchcase(module, pattern) for module in want):
            by_layer.setdefault(pattern.rpartition(".")[0], pattern)
    shardings = {f"{pattern}.weight": ("model", None) for pattern in by_layer.values()}
    result = sdy.propagate(program, {"model": 2}, in_shardings=shardings)
    actual = {name: entry.style for name, entry in result.parallelize_plan().items()}
    assert {name: actual.get(name) for name in want} == want
    assert len(want) > len(shardings)
