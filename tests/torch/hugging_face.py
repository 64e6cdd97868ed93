"""Seven models of Hugging Face, tiny, with random values in all their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
import transformers
from attrs import frozen

import shardy_py as sdy
from tests.torch.randomized import randomized

ROWS = ("model", None)
_SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "use_cache": False}


@frozen
class Model:
    """A model and what is said about its shardings.

    Args:
        make: Makes the model.
        input: Makes its input for a batch.
        shardings: The shardings of parameters by glob.
        tolerance: The relative difference that sums in another order may make.
    """

    make: Callable[[], Any]
    input: Callable[[int], torch.Tensor]
    shardings: Mapping[str, Any]
    tolerance: float = 1e-5


def _make(name: str, config: str, **sizes: Any) -> Callable[[], Any]:
    return lambda: getattr(transformers, name)(getattr(transformers, config)(**sizes))


def _tokens(batch: int) -> torch.Tensor:
    return torch.randint(0, 64, (batch, 8), generator=torch.Generator().manual_seed(1))


def _images(batch: int) -> torch.Tensor:
    return torch.randn((batch, 3, 32, 32), generator=torch.Generator().manual_seed(1))


_DECODER = {"*.[qkv]_proj.weight": ROWS, "*.gate_proj.weight": ROWS, "*embed_tokens.weight": ROWS}
_ENCODER = {f"*.{name}.weight": ROWS for name in ("query", "key", "value", "intermediate.dense")}
MODELS = {
    "gpt2": Model(
        _make(
            *("GPT2LMHeadModel", "GPT2Config"),
            **{"vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4, "use_cache": False},
        ),
        _tokens,
        {"*.c_attn.weight": (None, "model"), "*.c_fc.weight": (None, "model"), "*.wte.weight": ROWS},
    ),
    "llama": Model(_make("LlamaForCausalLM", "LlamaConfig", **_SMALL, **_HEADS), _tokens, _DECODER),
    "bert": Model(
        _make("BertModel", "BertConfig", **_SMALL, num_attention_heads=4),
        _tokens,
        {**_ENCODER, "*word_embeddings.weight": ROWS},
    ),
    "resnet": Model(
        _make(
            *("ResNetForImageClassification", "ResNetConfig"),
            **{"embedding_size": 16, "hidden_sizes": [32, 64, 128, 256], "depths": [1, 2, 1, 1]},
        ),
        _images,
        {"*.layer.0.convolution.weight": ("model", None, None, None)},
        5e-5,
    ),
    "convnext": Model(
        _make(
            *("ConvNextForImageClassification", "ConvNextConfig"), hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 2, 1]
        ),
        _images,
        {"*.pwconv1.weight": ROWS},
    ),
    "vit": Model(
        _make(
            *("ViTForImageClassification", "ViTConfig"),
            **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
            **{"image_size": 32, "patch_size": 8},
        ),
        _images,
        {**_ENCODER, "*.[qkv]_proj.weight": ROWS, "*.fc1.weight": ROWS},
    ),
    "mixtral": Model(
        _make("MixtralForCausalLM", "MixtralConfig", **_SMALL, **_HEADS, num_local_experts=4, num_experts_per_tok=2),
        _tokens,
        {**_DECODER, "*.experts.gate_up_proj": (None, "model", None)},
    ),
}
MESHES = {"4": {"model": 4}, "2x2": {"data": 2, "model": 2}}


def exported(name: str, batch: int) -> tuple[Any, torch.Tensor]:
    """Return a model, exported, and its input."""
    model = MODELS[name]
    batch_inputs = model.input(batch)
    module = randomized(model.make())
    return torch.export.export(module, (batch_inputs,)).run_decompositions({}), batch_inputs


def propagated(name: str, program: Any, mesh: Mapping[str, int]) -> sdy.Result:
    """Return an exported model with shardings: the batch on ``data``, and what is said about its parameters."""
    specs = program.graph_signature.input_specs
    names = [item.target for item in specs if item.target]
    shardings = {
        glob: sharding
        for glob, sharding in MODELS[name].shardings.items()
        if any(fnmatchcase(entry, glob) for entry in names)
    }
    if "data" in mesh:
        shardings[program.graph_signature.user_inputs[0]] = ("data",)
    return sdy.propagate(program, mesh, in_shardings=shardings, strict=True)


def distance(got: Any, want: Any) -> float:
    """Return the largest difference of any tensor of two outputs, relative to its largest number.

    Raises:
        ValueError: an output is not finite or equal for the whole batch, so that a difference would not be seen.
    """
    pairs = [
        (left, right)
        for left, right in zip(got, torch.utils._pytree.tree_leaves(want), strict=True)
        if isinstance(right, torch.Tensor)
    ]
    for _, right in pairs:
        if not bool(right.isfinite().all()) or float((right - right[:1]).abs().max() / right.abs().max()) < 1e-3:
            raise ValueError("an output is not finite, or does not depend on the input")
    return max(float((left - right).abs().max() / right.abs().max()) for left, right in pairs)
