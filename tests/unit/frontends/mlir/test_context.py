"""Contexts of MLIR."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import pytest

pytest.importorskip("jaxlib")

from shardy_py.frontends.mlir import context
from shardy_py.frontends.mlir.context import make_context


def test_threads_that_make_the_first_contexts_register_dialects_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings crash where two threads do it at the same time, without Python's global lock."""
    started = []
    register = context._jax_mlir_ext.register_dialects

    def register_slowly(registry: object) -> None:
        started.append(registry)
        time.sleep(0.05)
        register(registry)

    monkeypatch.setattr(context, "_jax_mlir_ext", SimpleNamespace(register_dialects=register_slowly))
    context._dialects.cache_clear()
    together = Barrier(4)

    def make(_: int) -> bool:
        together.wait()
        return make_context().allow_unregistered_dialects

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [True] * 4
    assert len(started) == 1
