"""Instructions of a device, by programs of NVIDIA where these are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardy_py.errors import OptionError, VerificationError
from shardy_py.kernels import get_device, machine_code

ASSEMBLER = """#!/bin/sh
# ptxas -arch=sm_90 -o FILE -
test "$1" = -arch=sm_90 || exit 1
(echo "assembled:"; cat) > "$3"
"""
DISASSEMBLER = """#!/bin/sh
# nvdisasm -c FILE
cat "$2"
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that stand for NVIDIA's; no others are found."""
    for name, text in (("ptxas", ASSEMBLER), ("nvdisasm", DISASSEMBLER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def find(name: str) -> str | None:
        return str(tmp_path / name) if (tmp_path / name).exists() else None

    monkeypatch.setattr(machine_code, "find_program", find)
    return tmp_path


def test_instructions_are_those_of_the_disassembler(programs: Path) -> None:
    """The assembler gets the PTX, the disassembler what the assembler wrote."""
    assert machine_code.sass_text("ret;", get_device("h100")) == "assembled:\nret;"


def test_what_is_missing_is_named(programs: Path) -> None:
    """Without a disassembler there are no instructions, and the error says which program is missing."""
    (programs / "nvdisasm").unlink()
    with pytest.raises(OptionError, match="programs that are not here: nvdisasm"):
        machine_code.sass_text("ret;", get_device("h100"))


def test_a_kernel_that_the_assembler_refuses(programs: Path) -> None:
    """An assembler that does not know the device is an error."""
    with pytest.raises(VerificationError, match="ptxas does not take the kernel"):
        machine_code.sass_text("ret;", get_device("a100"))
