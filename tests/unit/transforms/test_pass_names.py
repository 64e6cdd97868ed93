"""Passes by their names, and the text of pipelines."""

import pytest

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

import inspect
import pkgutil
from importlib import import_module

from attrs import has

import shardy_py.local
import shardy_py.mpmd
import shardy_py.transforms
from shardy_py.errors import OptionError
from shardy_py.transforms.finish.insert_explicit_reshards import InsertPartitionerReshardsPass
from shardy_py.transforms.pass_names import bundled_passes, get_pass, parse_pipeline
from shardy_py.transforms.propagate import PropagatePass
from shardy_py.transforms.run import PassPipeline


@pytest.mark.parametrize(
    "text",
    [
        "sdy-add-data-flow-edges,sdy-basic-propagate{keep-sharding-rules=true}",
        " builtin.module( sdy-add-data-flow-edges , sdy-basic-propagate{ keep-sharding-rules } ) ",
        "builtin.module(func.func(sdy-add-data-flow-edges),sdy-basic-propagate{keep-sharding-rules=1})",
        "any(sdy-add-data-flow-edges),sdy-basic-propagate{keep-sharding-rules=true conservative-propagation=false}",
    ],
)
def test_anchors_and_spaces_make_no_difference(text):
    """Every way to write a pipeline gives the same passes."""
    first, second = parse_pipeline(text)
    assert type(first).name == "sdy-add-data-flow-edges"
    assert second == get_pass("sdy-basic-propagate")(keep_sharding_rules=True)


def test_no_pass_is_a_pipeline_too():
    """With or without the anchor."""
    assert parse_pipeline("") == parse_pipeline("builtin.module()") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdy-basic-propogate", "did you mean sdy-basic-propagate"),
        ("sdy-basic-propagate{keep=true}", "has no option 'keep'"),
        ("sdy-basic-propagate{", "closing parenthesis or brace is missing"),
        ("sdy-basic-propagate)", r"'\)' too many"),
        ("sdy-basic-propagate,,canonicalize", "a pass name is missing"),
        ("sdy-basic-propagate{x=1}y", "no closing brace"),
        ("gpu.module(canonicalize)", "there is no pass"),
    ],
)
def test_malformed_pipelines_are_errors(text, message):
    """The message says what is wrong and what may have been meant."""
    with pytest.raises(OptionError, match=message):
        parse_pipeline(text)


def test_the_files_name_the_passes_that_their_classes_name():
    """Reading the files finds what importing all of them finds, but for the passes that no text names."""
    collected = {}
    rooms = [(room.__path__, f"{room.__name__}.") for room in (shardy_py.transforms, shardy_py.local, shardy_py.mpmd)]
    for info in [info for path, prefix in rooms for info in pkgutil.walk_packages(path, prefix)]:
        for class_ in vars(import_module(info.name)).values():
            if inspect.isclass(class_) and class_.__module__ == info.name and has(class_):
                name = getattr(class_, "name", None)
                if isinstance(name, str) and class_ not in (PropagatePass, InsertPartitionerReshardsPass):
                    assert name not in collected
                    collected[name] = f"{info.name}:{class_.__name__}"
    assert collected == bundled_passes()
    assert len(collected) > 40


@pytest.mark.parametrize("name", bundled_passes())
def test_every_listed_pass_exists_under_its_name(name):
    """The names and the classes agree, and defaults suffice."""
    class_ = get_pass(name)
    assert class_.name == name
    item = class_()
    assert parse_pipeline(name) == (item.passes if isinstance(item, PassPipeline) else (item,))
