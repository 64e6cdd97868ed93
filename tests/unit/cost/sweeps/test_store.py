"""Outcomes on disk."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from attrs import evolve

from shardy_py.cost.sweeps.outcomes import Collectives, RefusedSchedule, Row, outcome_data
from shardy_py.cost.sweeps.store import SweepStore
from shardy_py.errors import OptionError

HEADER = {"program": "1", "machine": "2"}
ROW = Row(
    name="a",
    schedule="levels of a",
    values_changed=3,
    collectives=(Collectives("all_gather", 2, 16.0),),
    communication_bytes=16.0,
    communication_seconds=0.5,
    compute_seconds=None,
    seconds=2.0,
    peak_bytes=64,
    flops=10,
    balance=0.25,
)
REFUSAL = RefusedSchedule("b", 'levels\nof "b" é', ("it is impossible",))


def filled(path: Path) -> bytes:
    """Write a store with two outcomes and return its bytes."""
    with SweepStore(path, HEADER) as store:
        store.add(ROW)
        store.add(REFUSAL)
    return path.read_bytes()


def test_outcomes_are_found_again(tmp_path: Path) -> None:
    """Rows and refusals read back as they were, by the text of their schedule; the name is the one asked for."""
    filled(tmp_path / "s.jsonl")
    with SweepStore(tmp_path / "s.jsonl", HEADER) as store:
        assert len(store) == 2
        assert store.find("a", ROW.schedule) == ROW
        assert store.find("other", ROW.schedule) == evolve(ROW, name="other")
        assert store.find("b", REFUSAL.schedule) == REFUSAL
        assert store.find("a", "levels of c") is None


def test_an_outcome_is_on_disk_when_add_returns(tmp_path: Path) -> None:
    """Each line is whole before the next outcome comes: whoever is stopped loses nothing."""
    path = tmp_path / "s.jsonl"
    with SweepStore(path, HEADER) as store:
        assert path.read_bytes().count(b"\n") == 1
        store.add(ROW)
        assert path.read_bytes().count(b"\n") == 2
        assert path.read_bytes().endswith(b"}\n")


def test_a_store_that_was_cut_anywhere_goes_on(tmp_path: Path) -> None:
    """Whatever byte a write stopped at, whole lines are kept, the rest is dropped, and the file is as if never cut."""
    path = tmp_path / "s.jsonl"
    complete = filled(path)
    for size in range(len(complete)):
        path.write_bytes(complete[:size])
        with SweepStore(path, HEADER) as store:
            assert len(store) == max(0, complete[:size].count(b"\n") - 1)
            for outcome in (ROW, REFUSAL):
                if store.find(outcome.name, outcome.schedule) is None:
                    store.add(outcome)
        assert path.read_bytes() == complete


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({**HEADER, "machine": "3"}, "of another sweep, with another machine"),
        ({"program": "2", "machine": "3"}, "of another sweep, with another program, machine"),
        ({**HEADER, "more": "4"}, "of another sweep, with another more"),
    ],
)
def test_a_store_of_another_sweep_is_refused(tmp_path: Path, header: dict[str, str], message: str) -> None:
    """What differs is named, and the file stays as it is."""
    path = tmp_path / "s.jsonl"
    before = filled(path)
    with pytest.raises(OptionError, match=message):
        SweepStore(path, header)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["notes", "notes\n", "{}\n", "[1]\nmore\n", '{"format": "x"}\n', "\n", "\n\n"])
def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path, content: str) -> None:
    """A file of another kind is an error, and keeps what is in it."""
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    with pytest.raises(OptionError, match="no store of a sweep"):
        SweepStore(path, HEADER)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        '{"name": "a"}',
        "[]",
        "3",
        "not JSON",
        '{"name": "a", "schedule": 1, "problems": 2}',
        '{"name": "a", "schedule": "x", "problems": "abc"}',
        json.dumps({**outcome_data(ROW), "flops": "many"}),
        json.dumps({**outcome_data(ROW), "seconds": float("nan")}),
        json.dumps({**outcome_data(ROW), "collectives": [{"kind": "all_gather"}]}),
        "[" * 100_000,
        "9" * 10_000,
        "\ufffd\0",
        "\0" * 1000,
        "x" * 3_000_000,
        json.dumps({**outcome_data(ROW), "flops": 10**400}),
        json.dumps({**outcome_data(ROW), "communication_bytes": -(10**350)}),
        json.dumps({**outcome_data(ROW), "values_changed": 10**4000}),
        json.dumps({**outcome_data(ROW), "values_changed": -1}),
        json.dumps({**outcome_data(ROW), "peak_bytes": float("inf")}),
        json.dumps({**outcome_data(ROW), "peak_bytes": -1}),
        json.dumps({**outcome_data(ROW), "seconds": True}),
        json.dumps({**outcome_data(ROW), "name": "\0"}),
        json.dumps({**outcome_data(ROW), "collectives": [{"kind": "\ud800", "count": 1, "bytes": 1}]}),
        json.dumps({**outcome_data(ROW), "collectives": [{"kind": "a", "count": 1, "bytes": 10**400}]}),
        json.dumps({**outcome_data(ROW), "collectives": [{"kind": "a", "count": 1, "bytes": 1}] * 2}),
        '{"flops": 1, ' + json.dumps(outcome_data(ROW))[1:],
        '{"plugins": 1, ' + json.dumps(outcome_data(ROW))[1:],
    ],
)
def test_a_bad_line_is_reported(tmp_path: Path, line: str) -> None:
    """A whole line that is no outcome is a problem with its number; it stays, and the store goes on."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(filled(path) + f"{line}\n".encode().replace(b'{"name"', b'{"plugins": "", "name"'))
    before = path.read_bytes()
    with SweepStore(path, HEADER) as store:
        assert [item.location for item in store.problems] == [f"{path}:4"]
        assert len(store) == 2
        store.add(evolve(ROW, schedule="levels of c"))
    assert path.read_bytes().startswith(before)
    with SweepStore(path, HEADER) as store:
        assert len(store) == 3


@pytest.mark.parametrize("line", [b"\xff\xfe", b"\xc3(", '{"name": "a"}'.encode("utf-16"), b"\xef\xbb\xbf{}"])
def test_a_line_in_another_encoding_is_reported(tmp_path: Path, line: bytes) -> None:
    """Lines are UTF-8."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(filled(path) + line + b"\n")
    with SweepStore(path, HEADER) as store:
        assert [item.location for item in store.problems] == [f"{path}:4"]


def test_outcomes_of_other_plugins_do_not_count(tmp_path: Path) -> None:
    """They stay, are counted in a warning, and are those of their plugins again."""
    path = tmp_path / "s.jsonl"
    with SweepStore(path, HEADER, plugins="old") as store:
        store.add(ROW)
        store.add(REFUSAL)
    changed = evolve(ROW, flops=11)
    with SweepStore(path, HEADER, plugins="new") as store:
        assert (len(store), [item.code for item in store.problems]) == (0, ["store-plugins"])
        assert "2 schedules" in store.problems[0].message
        store.add(changed)
    for plugins, outcome in (("old", ROW), ("new", changed)):
        with SweepStore(path, HEADER, plugins=plugins) as store:
            assert store.find("a", ROW.schedule) == outcome


def test_a_removed_store_is_written_again(tmp_path: Path) -> None:
    """The next outcome brings back those before it, also the ones that were read, and a warning."""
    path = tmp_path / "s.jsonl"
    before = filled(path)
    with SweepStore(path, HEADER) as store:
        path.unlink()
        store.add(evolve(ROW, schedule="levels of c"))
        store.add(evolve(ROW, schedule="levels of d"))
        assert [item.code for item in store.problems] == ["store-replaced"]
    assert path.read_bytes().startswith(before)
    with SweepStore(path, HEADER) as store:
        assert (len(store), store.problems) == (4, ())


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_replaced_store_gets_what_it_lacks(tmp_path: Path, in_place: bool, lines: int) -> None:
    """A store that was copied over, cut or emptied keeps what it has and gets the rest."""
    path = tmp_path / "s.jsonl"
    content = b"".join(filled(path).splitlines(keepends=True)[:lines])
    with SweepStore(path, HEADER) as store:
        if not in_place:
            path.unlink()
        path.write_bytes(content)
        store.add(evolve(ROW, schedule="levels of c"))
        assert [item.code for item in store.problems] == ["store-replaced"]
    with SweepStore(path, HEADER) as store:
        assert (len(store), store.problems) == (3, ())


@pytest.mark.parametrize("content", [b"notes of a user\n" * 1000, None])
def test_a_store_replaced_by_another_file_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    """The other file, or the store of another sweep, stays as it is."""
    path, other = tmp_path / "s.jsonl", tmp_path / "other.jsonl"
    if content is None:
        with SweepStore(other, {**HEADER, "machine": "3"}) as store:
            store.add(ROW)
    else:
        other.write_bytes(content)
    before = other.read_bytes()
    with SweepStore(path, HEADER) as store:
        other.replace(path)
        with pytest.raises(OptionError, match=r"no store of a sweep|of another sweep, with another machine"):
            store.add(ROW)
    assert path.read_bytes() == before


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    """Of a damaged file the first problems are shown, and how many more there are."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(filled(path) + b"bad\n" * 500)
    with SweepStore(path, HEADER) as store:
        assert len(store.problems) == 21
        assert "480 more lines" in store.problems[-1].message


def _write_rows(path: Path, who: int, count: int) -> None:
    """Run in a process of its own: open the store again and again, and add rows."""
    for number in range(count):
        with SweepStore(path, HEADER) as store:
            store.add(evolve(ROW, schedule=f"levels of {who}-{number} {'x' * (number % 7) * 1000}"))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Rows that processes write at the same time are all there, each on a line of its own."""
    path = tmp_path / "s.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_rows, args=(path, who, 150)) for who in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    with SweepStore(path, HEADER) as store:
        assert store.problems == ()
        assert len(store) == 300


def test_a_cut_line_of_another_process_is_dropped(tmp_path: Path) -> None:
    """What a killed process left of a line does not spoil the line that is added next."""
    path = tmp_path / "s.jsonl"
    with SweepStore(path, HEADER) as store:
        store.add(ROW)
        with path.open("ab") as stream:
            stream.write(b'{"name": "cut')
        store.add(REFUSAL)
    with SweepStore(path, HEADER) as store:
        assert (len(store), store.problems) == (2, ())


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The message has the file and the reason."""
    with pytest.raises(OptionError, match="cannot be opened"):
        SweepStore(tmp_path / "missing" / "s.jsonl", HEADER)
    with pytest.raises(OptionError, match="cannot be opened"):
        SweepStore(tmp_path, HEADER)
