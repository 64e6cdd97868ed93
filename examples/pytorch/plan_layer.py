"""Derive the parallel plan of a transformer layer from two annotated weights; needs the extra `torch`.

python examples/pytorch/plan_layer.py
"""

import torch
from torch import nn

import shardy_py as sdy


class Layer(nn.Module):
    """Attention and a gated perceptron, as in Llama."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate_proj, self.up_proj = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the layer."""
        batch, rows, width = x.shape
        query, key, value = (
            layer(x).view(batch, rows, -1, width // self.heads).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.o_proj(mixed.transpose(1, 2).reshape(batch, rows, -1))
        return x + self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


exported = torch.export.export(Layer(), (torch.ones(4, 16, 64),)).run_decompositions({})
result = sdy.propagate(
    exported,
    {"data": 2, "model": 2},
    in_shardings={
        "x": '[{"data"}, {?}, {?}]',
        "q_proj.weight": '[{"model"}, {?}]',
        "gate_proj.weight": '[{"model"}, {?}]',
    },
)
plan = result.parallelize_plan()
print(f"{'layer':12}{'style':20}weight")
for name, entry in plan.items():
    print(f"{name:12}{entry!s:20}{' '.join(str(item) for item in result.placements(f'{name}.weight'))}")
print("\ncommunication:")
for item in result.redistributions:
    print(f"  {item.kind} after {item.module}: {item.bytes} bytes")
