"""`Result.explore`."""

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py import OptionError, propagate
from shardy_py.frontends.mlir import parse_module
from tests.unit.explain.explore.programs import TWO_LAYERS


def test_a_result_shows_the_program_as_it_was_given():
    """The page of a module that the run has annotated is that of its text: annotations are those of the user."""
    from_text = propagate(TWO_LAYERS, trace=True).explore()
    native = parse_module(TWO_LAYERS)
    from_module = propagate(native, trace=True).explore()
    annotated = [page.data["runs"][0]["replay"]["annotations"]["slot"] for page in (from_text, from_module)]
    assert annotated[0] == annotated[1]
    assert len(annotated[0]) == 3


def test_a_page_shows_itself_in_a_notebook():
    """The picture of a page is a frame that holds all of it."""
    page = propagate(TWO_LAYERS, trace=True).explore(title="mine", against="flat", machine="cpu-8")
    assert page._repr_html_().startswith('<iframe title="mine" srcdoc="&lt;!doctype html&gt;')
    assert [run["name"] for run in page.data["runs"]] == ["default", "flat"]


def test_a_page_needs_a_trace():
    """Without a trace nothing is kept to show."""
    with pytest.raises(OptionError, match="trace=True"):
        propagate(TWO_LAYERS).explore()


def test_variants_are_runs_of_the_page():
    """Other shardings of the same program have their own run, whose cost is that of the variant alone."""
    other = TWO_LAYERS.replace('[{}, {"model"}]', "[{}, {}]").replace('[{"model"}, {}]', "[{}, {}]")
    page = propagate(TWO_LAYERS, trace=True).explore(variants={"replicated": other})
    alone = propagate(other, trace=True).explore()
    names = [run["name"] for run in page.data["runs"]]
    assert names == ["default", "replicated"]
    assert page.data["runs"][1]["quantities"] == alone.data["runs"][0]["quantities"]
