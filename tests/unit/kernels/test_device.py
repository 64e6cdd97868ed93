"""Device specs as TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardy_py.errors import OptionError
from shardy_py.kernels.device import H100, DeviceSpec, device_names, get_device, parse_device

TEXT = """
name = "toy"
capability = 80
cores = 4
threads_per_core = 1536
threads_per_warp = 32
threads_per_block = 1024
shared_bytes = 49152
blocks_x = 65535
"""


def problems(text: str) -> list[str]:
    """What is wrong with a device spec."""
    with pytest.raises(OptionError) as caught:
        parse_device(text, source="toy.toml")
    assert {item.location for item in caught.value.diagnostics} == {"toy.toml"}
    return [item.message for item in caught.value.diagnostics]


def test_every_key_is_read() -> None:
    """A device spec has what its text says, and as many threads as its cores keep."""
    expected = DeviceSpec(
        name="toy",
        capability=80,
        cores=4,
        threads_per_core=1536,
        threads_per_warp=32,
        threads_per_block=1024,
        shared_bytes=49152,
        blocks_x=65535,
    )
    assert parse_device(TEXT) == expected
    assert expected.threads == 6144


@pytest.mark.parametrize("name", device_names())
def test_devices_that_come_along(name: str) -> None:
    """Every spec that comes along has its own name and can run what PTX for sm_80 says, or no PTX."""
    actual = get_device(name)
    assert actual.name == name
    assert actual.capability >= 80 or actual.capability == 0


def test_h100() -> None:
    """The H100 keeps 270336 threads at once."""
    assert get_device("h100") == H100
    assert H100.threads == 270336


@pytest.mark.parametrize("key", [line.split(" ")[0] for line in TEXT.split("\n") if line])
def test_missing_keys_are_named(key: str) -> None:
    """A text without one of the keys is refused, and the key named."""
    text = "\n".join(line for line in TEXT.split("\n") if not line.startswith(f"{key} "))
    assert problems(text) == [f"{key} is missing"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cores = 0", "cores is not"),
        ("cores = -3", "cores is not"),
        ("cores = 4.0", "cores is not"),
        ("cores = true", "cores is not"),
        ("cores = 9999999999", "cores is not"),
        ('cores = "4"', "cores is not"),
    ],
)
def test_wrong_values_are_named(line: str, message: str) -> None:
    """A value that is no positive number is refused."""
    (actual,) = problems(TEXT.replace("cores = 4", line))
    assert actual.startswith(message)


def test_unknown_keys_and_names_are_refused() -> None:
    """Keys that no device has, and texts in the place of names, are errors; all are listed."""
    assert problems(TEXT.replace('"toy"', "3") + "cpus = 2") == ["unknown key 'cpus'", "name is no text"]


def test_files_and_names(tmp_path: Path) -> None:
    """A text that ends in .toml is a file; any other names a spec that comes along, or is refused with the like."""
    file = tmp_path / "toy.toml"
    file.write_text(TEXT, encoding="utf-8")
    assert get_device(str(file)) == get_device(file) == parse_device(TEXT)
    with pytest.raises(OptionError, match="did you mean h100"):
        get_device("h10")
    with pytest.raises(OptionError, match="cannot be read"):
        get_device(tmp_path / "none.toml")


def test_a_device_with_warps_of_64_threads() -> None:
    """Its kernels run in the interpreter, whose lanes exchange values over the whole warp; they are no PTX."""
    pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    import numpy as np

    from shardy_py.errors import UnsupportedError
    from shardy_py.kernels import emit
    from tests.unit.kernels.fusions import SUM, fusion_of

    kernel = emit(fusion_of(SUM.format(shape="4x256", result="4", dim=1)), device="mi300x")
    x = np.arange(1024, dtype=np.float32).reshape(4, 256)
    np.testing.assert_array_equal(kernel.run(x)[0], x.sum(axis=1))
    with pytest.raises(UnsupportedError, match="mi300x is not a device of NVIDIA"):
        _ = kernel.ptx


def test_the_host_has_no_warps_and_no_ptx() -> None:
    """A kernel for the device ``host`` has stages, of which those of reductions have one thread, and no PTX."""
    pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    from shardy_py.errors import UnsupportedError
    from shardy_py.kernels import emit
    from tests.unit.kernels.fusions import SUM, fusion_of

    kernel = emit(fusion_of(SUM.format(shape="4x256", result="4", dim=1)), device="host")
    assert kernel.launch.threads == (1, 1, 1)
    with pytest.raises(UnsupportedError, match="host is not a device of NVIDIA"):
        _ = kernel.ptx
