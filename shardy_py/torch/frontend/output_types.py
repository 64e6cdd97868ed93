"""Containers of inputs and outputs whose classes are those of libraries, such as the outputs of transformers.

A file names such a class, and PyTorch reads the file only where the class is known. Propagation needs no more than
what is inside, so that a class of the same name stands in for it.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from shardy_py.values import define

_TYPE = re.compile(rb'\\"type\\": \\"([\w.]+)\\"')
"""A class in the text of a tree inside the text of a model."""


@define
class Container:
    """Stand-in for an instance of a class that is not known.

    Attributes:
        items: The trees inside.
        context: What else the class keeps of itself.
    """

    items: tuple[Any, ...]
    context: Any


def register_unknown_types(data: bytes) -> None:
    """Let PyTorch read trees of the classes that a file names, as far as it does not know them.

    Args:
        data: The bytes of a ``.pt2`` file.
    """
    from torch.utils import _pytree as pytree

    for name in sorted(set(_named_types(data))):
        if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            _register(pytree, name)


def _named_types(data: bytes) -> Iterator[str]:
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                yield from (match.decode() for match in _TYPE.findall(archive.read(name)))


def _register(pytree: Any, name: str) -> None:
    container = type(name.rpartition(".")[2], (Container,), {"__doc__": f"Stands in for ``{name}``."})
    pytree.register_pytree_node(
        container,
        lambda tree: (list(tree.items), tree.context),
        lambda items, context: container(tuple(items), context),
        serialized_type_name=name,
    )
