"""The runner: passes in order over a program, observed after each."""

from __future__ import annotations

from typing import ClassVar

import pytest
from attrs import field, frozen

from shardy_py.ir import Builder, tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.transforms.import_pipeline import ImportPipeline
from shardy_py.transforms.run import Stage, passes_of, run
from shardy_py.transforms.snapshots import SaveModulePass


@frozen
class NotePass:
    """A pass that only says that it ran."""

    name: ClassVar[str] = "note"

    label: str
    seen: list = field(factory=list)

    def run(self, program, context):
        """Take down the label."""
        self.seen.append(self.label)


def program():
    """Return a program with a function that nobody calls."""
    b = Builder()
    with b.function("main", [tensor(8)]) as (x,):
        b.return_(x)
    b.declare("dead", [tensor(8)], [tensor(8)])
    return b.program


def test_passes_run_in_order_and_are_observed_after_each():
    """The observer gets the name of each pass and the program as the pass left it."""
    seen = []
    passes = (NotePass("first", seen), NotePass("second", seen))
    module = program()
    run(module, passes, PassContext(Registry.of([])), lambda name, now: seen.append((name, now is module)))
    assert seen == ["first", ("note", True), "second", ("note", True)]


@frozen
class AppendPass:
    """A pass over a list."""

    name: ClassVar[str] = "append"

    def run(self, subject, context):
        """Append the context."""
        subject.append(context)


def test_passes_run_over_other_subjects_with_a_context_of_theirs():
    """The modules of kernels, for example, which have another context."""
    seen, subject = [], []
    run(
        subject,
        passes_of([Stage(AppendPass(), "first"), Stage(AppendPass(), "again")]),
        3,
        lambda *now: seen.append(now),
    )
    assert seen == [("append", subject), ("append", subject)]
    assert subject == [3, 3]


def test_a_pipeline_runs_by_its_passes():
    """The passes of a pipeline do to a program what the pipeline says."""
    module = program()
    run(module, ImportPipeline().passes, PassContext(Registry.from_entry_points(blocked=["stablehlo"])))
    assert list(module.functions) == ["main"]


def test_a_context_without_a_function_for_snapshots_gets_one(tmp_path):
    """A snapshot is MLIR text, whoever runs the passes."""
    pytest.importorskip("jaxlib", reason="snapshots are written by the frontend of the program")
    run(program(), [SaveModulePass(str(tmp_path), "here", 7)], PassContext(Registry.of([])))
    assert "func.func" in (tmp_path / "07.here.mlir").read_text()


def test_what_a_run_warns_of_is_in_the_given_context():
    """A snapshot that cannot be written is a warning for the caller."""
    context = PassContext(Registry.of([]), dump=refuse)
    run(program(), [SaveModulePass("nowhere")], context)
    assert [item.code for item in context.warnings] == ["snapshot"]


def refuse(program, path):
    """Fail as a full disk does."""
    raise OSError(28, "No space left on device")
