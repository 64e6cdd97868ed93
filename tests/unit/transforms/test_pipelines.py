"""The pipelines as data: their passes, in order, with reasons."""

import pytest

from shardy_py.errors import OptionError
from shardy_py.ir import Builder
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.propagation import PropagationOptions
from shardy_py.transforms.export_pipeline import ExportPipeline
from shardy_py.transforms.import_pipeline import ImportPipeline
from shardy_py.transforms.pass_names import bundled_passes, parse_pipeline
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.propagate import PropagatePass
from shardy_py.transforms.snapshots import SaveModulePass

PIPELINES = [
    ImportPipeline(),
    ImportPipeline(dedup_functions_fully=True),
    ExportPipeline(),
    ExportPipeline(avoid_export_for_partitioning=True),
    ExportPipeline(enable_insert_explicit_collectives=True, remove_all_gather_reduce_scatter_for_cmv1=True),
    PropagationPipeline(),
    PropagationPipeline(dedup_functions_fully=True),
]


def names(pipeline):
    """Return the names of the passes."""
    return [item.name for item in pipeline.passes]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_every_pass_says_why_it_stands_where_it_stands(pipeline):
    """No pass is in a pipeline without a reason."""
    assert all(stage.reason for stage in pipeline.stages())


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_every_pass_has_a_name_of_its_own(pipeline):
    """Whatever a pipeline runs can be run alone, by name."""
    assert set(names(pipeline)) <= set(bundled_passes())


@pytest.mark.parametrize("name", ["sdy-import-pipeline", "sdy-export-pipeline", "sdy-propagation-pipeline"])
def test_the_text_of_a_pipeline_stands_for_its_passes(name):
    """A pipeline in a text is taken apart, so that each pass can be watched."""
    class_ = {item.name: item for item in (ImportPipeline, ExportPipeline, PropagationPipeline)}[name]
    assert parse_pipeline(f"builtin.module({name})") == class_().passes


def test_functions_are_copied_or_shared():
    """Calls get functions of their own and these are imported, or edges tie the calls of a function together."""
    copied, shared = names(PropagationPipeline()), names(PropagationPipeline(dedup_functions_fully=True))
    assert {"sdy-flatten-call-graph", "sdy-import-func-calls", "sdy-export-named-computations"} <= set(copied)
    assert {"sdy-add-func-data-flow-edges", "sdy-sink-func-data-flow-edges"} <= set(shared)
    assert not {"sdy-flatten-call-graph", "sdy-import-func-calls"} & set(shared)


def test_snapshots_are_numbered_through():
    """The snapshots of a whole run are in order when their names are."""
    saved = [item for item in PropagationPipeline(dump_directory="x").passes if isinstance(item, SaveModulePass)]
    assert [(item.directory, item.index, item.label) for item in saved] == [
        ("x", 1, "before_propagation"),
        ("x", 2, "after_propagation"),
        ("x", 3, "after_minimal_partitioner_with_global_shapes"),
    ]


def test_snapshots_go_to_the_directory(tmp_path):
    """A snapshot is written by the context's function, and only where a directory is given."""
    program, written = Builder().program, []
    context = PassContext(Registry.of([]), dump=lambda program, path: written.append(path))
    SaveModulePass(label="nowhere").run(program, context)
    SaveModulePass(str(tmp_path), "here", 7).run(program, context)
    assert written == [tmp_path / "07.here.mlir"]


def test_without_a_directory_there_are_no_snapshots():
    """A pass that would do nothing is left out."""
    assert SaveModulePass.name not in names(PropagationPipeline())


def test_propagation_parts_a_pipeline_in_two():
    """The passes before propagation and those after it are all passes but the one that propagates."""
    registry = Registry.of([])
    engine = PropagatePass(PropagationOptions(strategy="basic"))
    pipeline = PropagationPipeline(engine=engine, inline_calls=True)
    before, after = pipeline.before_propagation(registry), pipeline.after_propagation(registry)
    assert (*before, engine, *after) == pipeline.passes
    assert before[0].name == "inline-calls"


@pytest.mark.parametrize("shared", [False, True])
def test_an_engine_takes_the_place_of_propagation(shared):
    """A pipeline with a pass in the place of its own propagation has the passes of one that was made with it."""
    engine = PropagatePass(PropagationOptions(), lambda stage: None)
    made_with = PropagationPipeline(dedup_functions_fully=shared, engine=engine).passes
    assert PropagationPipeline(dedup_functions_fully=shared).passes_with(engine) == made_with


@pytest.mark.parametrize("class_", [ExportPipeline, PropagationPipeline])
def test_an_unknown_way_to_inline_meshes_is_refused(class_):
    """The error names the option, and what it may be."""
    with pytest.raises(OptionError, match=r"inline_meshes is 'maybe'.*\n.*give 'upstream' or 'true' or 'false'"):
        class_(inline_meshes="maybe")
