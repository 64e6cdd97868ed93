"""Run a perceptron on four processes, each with its shards; needs the extra `torch`.

torchrun --nproc-per-node 4 examples/pytorch/run_mlp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import shardy_py as sdy

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
x = torch.randn(8, 16)
exported = torch.export.export(model, (x,)).run_decompositions({})
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
result = sdy.propagate(exported, mesh, in_shardings={"input": ("data",), "0.weight": ("model", None)})
program = result.to_torch(mesh)
with torch.no_grad():
    (output,) = program(x)
if dist.get_rank() == 0:
    print("as the module computes:", torch.allclose(output, model(x), atol=1e-6))
    for name, entry in result.parallelize_plan().items():
        print(name, entry)
    print("collectives of a process:", dict(program.collectives))
dist.destroy_process_group()
