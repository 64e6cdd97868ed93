"""Every panel of a page, in a browser."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.cost.sweeps.comparison import compare_schedules
from shardy_py.explain.explore.explore import ExploreOptions, explore
from shardy_py.explain.explore.variants import Variant
from tests.unit.explain.explore.programs import LOOP, RIVALS, TWO_LAYERS

pytestmark = pytest.mark.browser

TWO_USERS = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
    %w: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<16x32xf32> {
  %0 = stablehlo.tanh %x : tensor<16x64xf32> loc(#act)
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
    : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32> loc(#down)
  %2 = stablehlo.sine %1 : tensor<16x32xf32> loc(#sine)
  %3 = stablehlo.cosine %1 : tensor<16x32xf32> loc(#cosine)
  %4 = stablehlo.add %2, %3 : tensor<16x32xf32> loc(#add)
  return %4 : tensor<16x32xf32>
}
#act = loc("jit(f)/layer_0/tanh"("model.py":7:3))
#down = loc("jit(f)/layer_0/dot_general"("model.py":8:3))
#sine = loc("jit(f)/layer_1/sin"("model.py":9:3))
#cosine = loc("jit(f)/layer_1/cos"("model.py":10:3))
#add = loc("jit(f)/layer_1/add"("model.py":11:3))
"""
"""A sum in one layer that two ops of the next one use."""


def _page(text, **options):
    return explore(SessionArguments(text), ExploreOptions(title="a program", **options))


@pytest.fixture(scope="module")
def two_layers():
    """The page of two layers on a machine."""
    return _page(TWO_LAYERS, machine="cpu-8")


def _choose(tab, name):
    """Find a row of the tree by a search, and click on it."""
    tab.get_by_role("searchbox").fill(name)
    tab.locator("shardy-tree .row").first.click()


def test_the_tree_folds_searches_and_chooses(open_page, expect, two_layers):
    """A row unfolds by its sign and by keys; a search lists ops by name, name stack and line."""
    tab = open_page(two_layers)
    rows = tab.locator("shardy-tree .row .name")
    assert "layer_0" in rows.all_inner_texts()
    tab.locator(".row", has_text="layer_0").locator("[data-sign]").click()
    expect(rows.filter(has_text="tanh")).not_to_have_count(0)
    tab.get_by_role("searchbox").fill("model.py:8")
    expect(rows).to_have_text(["tanh layer_0"])
    rows.first.click()
    expect(tab.locator("shardy-details h2")).to_have_text("%1 = stablehlo.tanh")
    tab.get_by_label("Names").select_option("mlir")
    expect(rows).to_have_text(["%1 = stablehlo.tanh layer_0"])


@pytest.mark.parametrize("kind", ["functions", "source", "transfers"])
def test_the_tree_has_other_orders(open_page, expect, two_layers, kind):
    """The same ops come by function, by line of the source, and by what they send."""
    tab = open_page(two_layers)
    tab.get_by_label("by", exact=True).select_option(kind)
    expected = {"functions": "@main", "source": "model.py", "transfers": "512 B in 1 transfer"}
    expect(tab.locator("shardy-tree")).to_contain_text(expected[kind])


def test_widths_are_bytes_or_time(open_page, expect, two_layers):
    """The measure of the widths can be chosen; what an op sends is shown at it."""
    tab = open_page(two_layers)
    tab.get_by_label("Width").select_option("sent")
    tab.get_by_role("searchbox").fill("model.py:9")
    expect(tab.locator(".row .weight")).to_have_attribute("aria-label", "512 B")
    tab.get_by_label("Width").select_option("time")
    expect(tab.locator(".row .weight")).to_have_attribute("aria-label", re.compile("s$"))


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("model.py:9", "%2 = stablehlo.dot_general"),
        ("layer_1", "layer_1"),
        ("%arg1", "argument %arg1"),
        ("result0", "result result0"),
        ("@main", "@main"),
    ],
)
def test_each_kind_of_node_has_details(open_page, expect, two_layers, name, title):
    """Ops, groups, arguments, results and functions say what they are."""
    tab = open_page(two_layers)
    _choose(tab, name)
    expect(tab.locator("shardy-details h2")).to_contain_text(title)


def test_nodes_of_the_graph_are_clicked_and_unfolded(open_page, expect, two_layers):
    """A click on a node shows its details; a click on the sign of a group folds it."""
    tab = open_page(two_layers)
    node = tab.locator("shardy-graph .node", has_text="tanh").last
    node.locator("rect").first.click()
    expect(tab.locator("shardy-details h2")).to_have_text("%1 = stablehlo.tanh")
    frame = tab.locator("shardy-graph .node.frame text", has_text="layer_0")
    frame.click()
    expect(frame).to_have_count(0)
    tab.locator("shardy-graph .node text", has_text="layer_0").first.click()
    expect(frame).to_have_count(1)


def test_transfers_are_badges_and_thick_edges(open_page, expect, two_layers):
    """The all-reduce stands at the product that makes its tensor, and its edge is the thickest."""
    tab = open_page(two_layers)
    expect(tab.locator("shardy-graph .badge")).to_have_text(["all-reduce"])
    widths = [float(item.get_attribute("stroke-width")) for item in tab.locator("shardy-graph .edge").all()]
    moving = [float(item.get_attribute("stroke-width")) for item in tab.locator("shardy-graph .edge.moves").all()]
    assert len(moving) == 1
    assert moving[0] == max(widths) > min(widths)


def test_details_give_the_chain_back_to_the_annotation(open_page, expect, two_layers):
    """An axis is followed move by move to the argument that is annotated with it, and the way is highlighted."""
    tab = open_page(two_layers)
    _choose(tab, "tanh")
    chain = tab.locator('details.chain[data-axis="model"]')
    expect(chain).to_contain_text("comes from function argument %arg1")
    chain.locator("summary").click()
    expect(chain.locator("li").last).to_contain_text("annotated")
    chain.get_by_role("button", name="Highlight in the graph").click()
    tab.locator("shardy-graph .node.lit").first.wait_for()


def test_details_have_boxes_with_device_numbers(open_page, expect, two_layers):
    """A tensor over both axes is cut into eight parts; each has the device that JAX puts there."""
    tab = open_page(two_layers)
    _choose(tab, "tanh")
    expect(tab.locator("shardy-details svg.box text")).to_have_text(["0", "1", "2", "3", "4", "5", "6", "7"])
    label = re.compile("4 by 2 parts over dimensions 0 and 1")
    expect(tab.locator("shardy-details svg.box")).to_have_attribute("aria-label", label)


def test_details_have_rule_bytes_and_transfers(open_page, expect, two_layers):
    """The rule with its sizes, the bytes on a device, and the transfer with its number are there."""
    tab = open_page(two_layers)
    _choose(tab, "model.py:9")
    for expected in ("([i, k], [k, j])->([i, j])", "2.0 KiB in all, 512 B on a device", "all-reduce", "--reshard"):
        expect(tab.locator("shardy-details")).to_contain_text(expected)


def test_details_say_what_was_refused_and_why(open_page, expect):
    """Where two tensors want an axis, the loser, the op and the reason are named."""
    tab = open_page(_page(RIVALS))
    collected = []
    for name in ("%0", "%1", "%2", "%arg0", "%arg1"):
        _choose(tab, name)
        expect(tab.locator("shardy-details h2")).to_contain_text(name)
        collected += tab.locator("ul.refusals li").all_inner_texts()
    assert any("refused at stablehlo" in text and '"model"' in text for text in collected)


def test_proposals_have_a_price(open_page):
    """The details of the program list the proposals that send less, with bytes before and after."""
    page = _page(RIVALS)
    useful = [item["text"] for item in page.data["proposals"] if item["useful"]]
    tab = open_page(page)
    texts = tab.locator("ul.proposals li").all_inner_texts()
    assert [text.partition("\n")[0] for text in texts] == useful[:6]
    assert all("sent" in text and "→" in text for text in texts)


def test_the_slider_replays_propagation(open_page, expect, two_layers):
    """At the start only annotations are there; each update changes what it says; the end is the finished program."""
    tab = open_page(two_layers)
    _choose(tab, "tanh")
    slider = tab.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("finished program"))
    tab.get_by_role("button", name="To the annotations").click()
    expect(slider).to_have_attribute("aria-valuetext", re.compile("before any update"))
    expect(tab.locator("shardy-details")).to_contain_text("no sharding")
    slider.focus()
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("update 1 of"))
    tab.locator("shardy-graph .node.changed").first.wait_for(state="attached")
    tab.get_by_role("button", name="Next level").click()
    tab.get_by_role("button", name="To the finished program").click()
    expect(tab.locator("shardy-details dl").nth(1)).not_to_contain_text("no sharding")


def test_memory_and_time_have_charts(open_page, expect, two_layers):
    """The memory chart names what lives at the peak, the time chart what a machine takes."""
    tab = open_page(two_layers)
    memory = tab.locator("shardy-memory")
    assert "tensors live, the largest" in memory.inner_text()
    memory.get_by_role("img").focus()
    before = memory.inner_text()
    memory.get_by_role("img").press("ArrowLeft")
    expect(memory).not_to_have_text(before, use_inner_text=True)
    assert "communicating" in tab.locator("shardy-time svg").get_attribute("aria-label")


@pytest.mark.parametrize("chart", ["memory", "time"])
def test_charts_have_ticks_and_zoom(open_page, expect, two_layers, chart):
    """The axis has numbers; zooming shows a smaller part, with other numbers, and All shows everything again."""
    tab = open_page(two_layers)
    svg = tab.locator(f"shardy-{chart} svg")
    texts = svg.locator("text.small").all_text_contents()
    assert sum(bool(re.search(r"\d", text)) for text in texts) >= 3
    full_view = svg.get_attribute("data-view")
    tab.get_by_role("button", name=f"Zoom in: {chart}").click()
    expect(svg).not_to_have_attribute("data-view", full_view)
    tab.get_by_role("button", name=f"Show all: {chart}").click()
    expect(svg).to_have_attribute("data-view", full_view)


def test_one_number_for_one_memory(open_page, two_layers):
    """The highest point of the line is the peak of the cost."""
    tab = open_page(two_layers)
    peak = two_layers.data["runs"][0]["quantities"]["peak_bytes"]["value"]
    assert max(two_layers.data["runs"][0]["memory"]["bytes"]) == peak
    cell = tab.locator("shardy-details tr", has_text="peak bytes").locator("td").nth(1)
    assert f"peak {cell.inner_text()}" in tab.locator("shardy-memory").inner_text()


def test_times_are_exported_for_perfetto(open_page, two_layers):
    """The trace has an event for each piece of the chart, which last as long as the program."""
    tab = open_page(two_layers)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Perfetto").click()
    events = json.loads(download.value.path().read_text())["traceEvents"]
    pieces = [event for event in events if event["ph"] == "X" and event["tid"] > 1]
    seconds = two_layers.data["runs"][0]["quantities"]["seconds"]["value"]
    assert sum(event["dur"] for event in pieces) == pytest.approx(seconds * 1e6)
    names = {event["name"] for event in pieces}
    assert "all-reduce" in names
    assert any(name.startswith("ij,jk->ik  layer_0/") for name in names)


def test_edges_are_bundled_until_all_are_asked_for(open_page, expect):
    """Edges from one group to another are one; a button draws each between the ops."""
    tab = open_page(_page(TWO_LAYERS))
    edges = tab.locator("shardy-graph .edge")
    bundled = edges.count()
    tab.get_by_role("button", name="All edges").click()
    expect(edges).not_to_have_count(bundled)
    assert edges.count() > bundled


def test_edges_of_boxes_that_are_too_small_are_one_with_each_transfer_once(open_page, expect):
    """A sum that two ops of another layer use is sent once, also where the two edges are drawn as one."""
    tab = open_page(_page(TWO_USERS))
    tab.get_by_role("button", name="All edges").click()
    titles = tab.locator("shardy-graph .edge.moves title")
    expect(titles).to_have_count(2)
    texts = {text.partition(": ")[2] for text in titles.all_text_contents()}
    tab.locator("shardy-graph").evaluate("(graph) => graph.zoom(0.08)")
    expect(titles).to_have_count(1)
    assert {titles.text_content().partition(": ")[2]} == texts == {"512 B sent by a device, 1 transfer"}


def test_axes_have_one_colour_each(open_page):
    """A tensor over two axes has the colours of both, which the legend names."""
    tab = open_page(_page(TWO_LAYERS))
    legend = dict(
        zip(
            tab.locator(".legend span").all_inner_texts(),
            [swatch.get_attribute("style").split(": ")[1] for swatch in tab.locator(".legend i").all()],
            strict=True,
        )
    )
    assert list(legend) == ["not sharded", "data 4", "model 2"]
    tab.get_by_role("searchbox").fill("tanh")
    style = tab.locator(".row .tint").first.get_attribute("style")
    assert legend["data 4"] in style
    assert legend["model 2"] in style


def test_plans_are_shown_side_by_side(open_page, expect):
    """The program with other shardings has its own column of numbers and its own graph."""
    other = TWO_LAYERS.replace('[{}, {"model"}]', "[{}, {}]").replace('[{"model"}, {}]', "[{}, {}]")
    tab = open_page(_page(TWO_LAYERS, variants=[Variant("by hand", other)]))
    heads = tab.locator("shardy-details thead").first
    expect(heads).to_contain_text("by hand")
    tab.get_by_role("button", name="Side by side").click()
    graphs = tab.locator("shardy-graph")
    expect(graphs).to_have_count(2)
    expect(graphs.nth(0).locator(".badge")).to_have_count(1)
    expect(graphs.nth(1).locator(".badge")).to_have_count(0)


def test_two_orders_are_shown_side_by_side(open_page, expect):
    """Two graphs with one view; what differs is marked in both and listed in the tree."""
    tab = open_page(_page(RIVALS, schedule="contractions-first", against="elementwise-first"))
    tab.get_by_role("button", name="Side by side").click()
    graphs = tab.locator("shardy-graph")
    expect(graphs).to_have_count(2)
    for graph in graphs.all():
        graph.locator(".node.differs").first.wait_for()
    tab.get_by_label("by", exact=True).select_option("differences")
    expect(tab.get_by_role("treeitem")).not_to_have_count(0)
    tab.get_by_label("Order").select_option("1")
    tab.get_by_role("button", name="Side by side").click()
    expect(graphs).to_have_count(1)


def test_a_sweep_is_a_picture_of_bytes_and_memory(open_page):
    """Equal orders are a point with their names and count; those that none beats are marked; both axes have ticks."""
    comparison = compare_schedules(RIVALS, jobs=1)
    tab = open_page(_page(RIVALS, sweep=comparison))
    points = tab.locator("shardy-orders circle")
    spots = {(row.communication_bytes, row.peak_bytes) for row in comparison.rows}
    assert points.count() == len(spots)
    points.first.focus()
    fronts = " ".join(point.get_attribute("data-order") for point in tab.locator("shardy-orders circle.front").all())
    assert {row.name for row in comparison.rows if (row.communication_bytes, row.peak_bytes) == min(spots)} <= {
        *fronts.split(" ")
    }
    assert "sent, peak" in tab.locator("shardy-orders").inner_text()
    names = tab.locator("shardy-orders text.named").all_text_contents()
    assert sum(1 + int(text.split()[2]) if " and " in text else 1 for text in names) == len(comparison.rows)
    assert tab.locator("shardy-orders text.small").count() > len(names) + 5


def test_loops_are_groups_with_their_runs(open_page, expect):
    """A loop unfolds to its regions; what is inside has its own nodes."""
    tab = open_page(_page(LOOP))
    _choose(tab, "sine")
    path = tab.locator("shardy-details p").first
    expect(path).to_contain_text("stablehlo.while")
    expect(path).to_contain_text("region 1")
