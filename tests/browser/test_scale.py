"""Large programs: how soon a page opens, and how soon it reacts.

Limits are for a machine that does nothing else. They grow with the time of a fixed loop, because machines are shared.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import explore
from shardy_py.explain.explore.page import Page
from tests.browser.repeated import repeat

pytestmark = pytest.mark.browser

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "gpt_train.mlir"
SLACK = 1.0 if "SHARDY_TIMES" in os.environ else 10.0
"""Shared machines get ten times as long, so that only a page that became slow by an order fails there."""
LOOP_SECONDS = 0.1
"""The time of the loop on a machine that does nothing else."""
LOOP = """() => {
  const start = performance.now();
  const all = [];
  for (let at = 0; at < 600000; at += 1) all.push({ key: `${at}`, at });
  const map = new Map(all.map((one) => [one.key, one]));
  return (performance.now() - start) / 1000 + 0 * map.size;
}"""
REACT = """async () => {
  const graph = document.querySelector("shardy-graph");
  const { state } = graph;
  const { model } = state;
  const times = [];
  for (let time = 0; time < 5; time += 1) {
    const start = performance.now();
    ACTION;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  return Math.min(...times) / 1000;
}"""
ACTIONS = {
    "slider": "state.set({ time: 300 + time })",
    "pan": "graph.show(graph.view.scale, graph.view.x - 40, graph.view.y - 60)",
    "zoom": "graph.zoom(time % 2 ? 2 : 0.5)",
    "choose": "state.choose(4000 + time)",
    "unfold": "state.toggle(model.childrenOf(model.roots[0])[3])",
    "measure": "state.set({ measure: time % 2 ? 'sent' : 'memory' })",
}


@pytest.fixture(scope="module")
def small():
    """The page of a training step."""
    return explore(SessionArguments(PROGRAM)).data


def _slowness(tab):
    return SLACK * max(1.0, min(tab.evaluate(LOOP) for _ in range(2)) / LOOP_SECONDS)


def _opened(open_page, page):
    """Open a page three times; return the last one with the least seconds to get ready, and how slow the machine is."""
    seconds, slowness = [], []
    for _ in range(3):
        tab = open_page(page)
        seconds.append(tab.evaluate("performance.now()") / 1000)
        slowness.append(_slowness(tab))
    return tab, min(seconds), max(slowness)


def test_ten_thousand_ops_open_in_a_second_and_react_in_a_tenth(open_page, small):
    """A training step of that size is there at once, and follows the hand."""
    tab, seconds, slowness = _opened(open_page, Page(repeat(small, 12)))
    assert tab.evaluate("document.querySelector('shardy-graph').model.count") > 10_000
    assert seconds < 1.0 * slowness
    times = {name: tab.evaluate(REACT.replace("ACTION", action)) for name, action in ACTIONS.items()}
    late = {name: time for name, time in times.items() if time > 0.1 * max(slowness, _slowness(tab))}
    assert late == {}


def test_a_hundred_thousand_ops_open_folded_in_three_seconds(open_page, small):
    """The page of the largest programs is folded, and opens all the same."""
    tab, seconds, slowness = _opened(open_page, Page(repeat(small, 113)))
    assert tab.evaluate("document.querySelector('shardy-graph').model.count") > 100_000
    assert tab.locator("shardy-graph .node").count() < 500
    assert seconds < 3.0 * slowness


def test_zoomed_out_all_is_there_in_fewer_boxes(open_page, small):
    """With all groups unfolded the whole program is in sight, few boxes stand for it, and edges still show."""
    tab = open_page(Page(repeat(small, 12)))
    tab.evaluate(
        """() => {
          const graph = document.querySelector("shardy-graph");
          const groups = Array.from({ length: graph.model.groupCount }, (_, at) => graph.model.count + at);
          graph.state.set({ expanded: new Set(groups) });
          graph.fit();
        }"""
    )
    tab.locator("shardy-graph .node.coarse").first.wait_for(state="attached")
    assert tab.locator("shardy-graph .node").count() < 500
    boxes, window = tab.evaluate(
        """() => {
          const box = (name) => document.querySelector(name).getBoundingClientRect();
          const [whole, svg] = [box("shardy-graph svg > g"), box("shardy-graph svg")];
          return [[whole.width, whole.height], [svg.width, svg.height]];
        }"""
    )
    assert boxes[0] <= window[0] * 1.1
    assert boxes[1] <= window[1] * 1.1
    assert boxes[1] > window[1] / 2 or boxes[0] > window[0] / 2
    tab.evaluate("document.querySelector('shardy-graph').zoom(30)")
    tab.locator("shardy-graph .node:not(.frame):not(.coarse)").first.wait_for(state="attached")
