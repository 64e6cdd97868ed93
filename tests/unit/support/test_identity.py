"""Identities of objects."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from shardy_py.support.identity import identity


def test_no_two_objects_have_the_same() -> None:
    """All objects that are alive have identities of their own, equal ones and small numbers included."""
    objects = [*gc.get_objects()[:20_000], *range(1000), *[(1.5, []) for _ in range(1000)], None, int, identity]
    distinct = {id(item): item for item in objects}
    assert len({identity(item) for item in distinct.values()}) == len(distinct)
    assert all(identity(item) == identity(item) for item in objects)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 nothing that comes with JAX listens")
def test_nobody_hears_of_it() -> None:
    """Audit hooks are not told."""
    code = (
        "import sys\n"
        "from shardy_py.support.identity import identity\n"
        "sys.addaudithook(lambda event, arguments: print(event) if event == 'builtins.id' else None)\n"
        "identity(sys)\n"
        "print('end')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "end\n"
