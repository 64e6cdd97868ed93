"""Pages for every reader: keys, small windows, dark mode, texts for pictures."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import ExploreOptions, explore
from tests.unit.explain.explore.programs import TWO_LAYERS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page():
    """The page of two layers."""
    return explore(SessionArguments(TWO_LAYERS), ExploreOptions(title="a program", machine="cpu-8", against="flat"))


def test_keys_walk_the_tree(open_page, page, expect):
    """Arrows move, unfold and fold; Enter chooses; the tree says which row is active."""
    tab = open_page(page)
    tree = tab.get_by_role("tree")
    tree.focus()
    tree.press("ArrowDown")
    expect(tree).to_have_attribute("aria-activedescendant", "row-1")
    row = tab.locator("#row-1")
    expect(row).to_have_attribute("aria-selected", "true")
    tree.press("ArrowRight")
    expect(row).to_have_attribute("aria-expanded", "true")
    tree.press("ArrowLeft")
    expect(row).to_have_attribute("aria-expanded", "false")
    tree.press("Enter")
    expect(tab.locator("shardy-details h2")).to_have_text(row.locator(".name").inner_text())


def test_keys_walk_the_graph(open_page, page, expect):
    """Arrows go along edges, Enter folds, Escape goes to the group around; the node is told to screen readers."""
    tab = open_page(page)
    tab.get_by_role("searchbox").fill("tanh")
    tab.get_by_role("treeitem").first.click()
    graph = tab.get_by_role("application")
    graph.focus()
    graph.press("ArrowDown")
    expect(tab.locator("shardy-details h2")).to_have_text("%2 = stablehlo.dot_general")
    expect(tab.locator("#live")).to_contain_text("all-reduce")
    graph.press("ArrowUp")
    expect(tab.locator("shardy-details h2")).to_have_text("%1 = stablehlo.tanh")
    graph.press("Escape")
    expect(tab.locator("shardy-details h2")).to_have_text("layer_0")
    graph.press("Enter")
    expect(tab.locator("#live")).to_contain_text("layer_0: folded")
    drawing = tab.locator("shardy-graph svg > g")
    scale = drawing.get_attribute("transform")
    graph.press("+")
    # The page forbids texts as scripts, so the test asks again and again from outside.
    expect(drawing).not_to_have_attribute("transform", scale)


def test_narrow_windows_show_all_panels_without_scrolling_sideways(open_page, page):
    """At 360 pixels all panels are below each other and as wide as the window."""
    tab = open_page(page, width=360, height=740)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("tree", "graph", "details", "replay", "memory"):
        box = tab.locator(f"shardy-{name}").first.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 20


@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_contrast_in_both_modes(open_page, page, dark):
    """Texts differ enough from what is behind them, as the guidelines for accessible content ask."""
    tab = open_page(page, dark=dark)
    ratios = tab.evaluate(
        """() => {
          const light = (text) => {
            const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => {
              const v = c / 255;
              return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const style = getComputedStyle(document.documentElement);
          const probe = document.body.appendChild(document.createElement("span"));
          const of = (name) => {
            probe.style.color = style.getPropertyValue(name);
            return light(getComputedStyle(probe).color);
          };
          const pairs = [["--text", "--back"], ["--text", "--panel"], ["--faint", "--panel"], ["--accent", "--panel"],
            ["--differs", "--back"], ["--text", "--node"], ["--faint", "--node"]];
          return pairs.map(([a, b]) => {
            const [x, y] = [of(a), of(b)].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05);
          });
        }"""
    )
    assert min(ratios) >= 4.5


def test_pictures_and_controls_have_names(open_page, page):
    """Every picture, button, field and focusable thing has a name in words."""
    tab = open_page(page)
    nameless = tab.evaluate(
        """() => {
          const found = document.querySelectorAll('svg[role], button, input, select, [tabindex], [role=treeitem]');
          const hasName = (one) =>
            one.getAttribute('aria-label') || one.title || one.textContent.trim() || one.closest('label');
          return [...found].filter((one) => !hasName(one)).map((one) => one.outerHTML.slice(0, 80));
        }"""
    )
    assert nameless == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (360, 740)])
def test_axe_finds_nothing_serious(open_page, page, dark, width, height):
    """With an op selected, no rule of axe-core is broken seriously, in small and large windows, light and dark.

    Contrasts that it cannot tell, of texts on what is drawn, are left to the test of the colours.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with it")
    tab = open_page(page, width=width, height=height, dark=dark)
    tab.get_by_role("searchbox").fill("tanh")
    tab.get_by_role("treeitem").first.click()
    actual = axe.Axe().run(tab).response
    assert len(actual["passes"]) > 10
    unsure = [item for item in actual["incomplete"] if item["id"] != "color-contrast"]
    serious = [item for item in (*actual["violations"], *unsure) if item["impact"] in ("serious", "critical")]
    assert [(item["id"], [node["html"][:120] for node in item["nodes"]]) for item in serious] == []


def test_what_propagation_did_is_not_cut_in_a_small_window(open_page, page):
    """The line below the slider wraps, so that all of it can be read."""
    tab = open_page(page, width=320, height=740)
    line = tab.locator("shardy-replay output")
    assert "the shardings of the finished program" in line.inner_text()
    assert line.evaluate("(one) => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight")
