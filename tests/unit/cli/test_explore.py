"""``shardy explore``."""

from __future__ import annotations

import json

from tests.unit.explain.explore.programs import TWO_LAYERS


def test_the_page_of_a_file_is_one_html_file(tmp_path, shardy):
    """The title is the name of the file; nothing is loaded from elsewhere."""
    program, page = tmp_path / "two.mlir", tmp_path / "page.html"
    program.write_text(TWO_LAYERS)
    done = shardy("explore", str(program), "-o", str(page))
    assert done.exit_code == 0
    html = page.read_text()
    assert "<title>two.mlir</title>" in html
    assert "src=" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")


def test_files_for_model_explorer_are_two(tmp_path, shardy):
    """The graph and the numbers of its nodes are JSON in the folder that was given."""
    program, folder = tmp_path / "two.mlir", tmp_path / "files"
    program.write_text(TWO_LAYERS)
    assert shardy("explore", str(program), "--model-explorer", str(folder)).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["graph.json", "node_data.json"]
    assert json.loads((folder / "graph.json").read_text())["label"] == "two.mlir"


def test_there_must_be_something_to_write(tmp_path, shardy):
    """Without an output the command says which there are; random orders belong to a sweep."""
    program = tmp_path / "two.mlir"
    program.write_text(TWO_LAYERS)
    done = shardy("explore", str(program))
    assert done.exit_code == 2
    assert "-o page.html" in done.stderr
    done = shardy("explore", str(program), "-o", str(tmp_path / "page.html"), "--random", "3")
    assert done.exit_code == 2
    assert "--sweep" in done.stderr
