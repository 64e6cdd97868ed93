"""Data of pages."""

import json
import zlib
from base64 import b64decode

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import ExploreOptions, explore
from tests.unit.explain.explore.programs import LOOP, RIVALS, TWO_LAYERS


def _data(text, **options):
    return explore(SessionArguments(text), ExploreOptions(**options)).data


def _names(data, table, column):
    return [data["strings"][number] for number in data[table][column]]


def test_ops_arguments_and_results_are_rows():
    """What computes, comes in or goes out has a row; communication has none."""
    data = _data(TWO_LAYERS)
    names = _names(data, "ops", "name")
    assert names.count("argument") == 3
    assert names.count("result") == 1
    assert [name for name in names if name.startswith("stablehlo")] == [
        "stablehlo.dot_general",
        "stablehlo.tanh",
        "stablehlo.dot_general",
        "stablehlo.add",
    ]
    assert not any(name.startswith("sdy.") for name in names)


def test_rows_join_through_communication():
    """An op that takes what a collective makes is joined to the op before the collective."""
    data = _data(TWO_LAYERS)
    names = _names(data, "ops", "name")
    add = names.index("stablehlo.add")
    sources = {data["values"]["op"][value] for value in data["ops"]["inputs"][add]}
    assert {names[row] for row in sources} == {"stablehlo.dot_general", "argument"}


def test_layers_are_groups_and_locations_are_kept():
    """Name stacks fold the graph; rows have the name stack and the line."""
    data = _data(TWO_LAYERS)
    groups = _names(data, "groups", "name")
    assert {"layer_0", "layer_1", "@main"} <= set(groups)
    row = _names(data, "ops", "name").index("stablehlo.tanh")
    assert groups[data["ops"]["group"][row]] == "layer_0"
    assert _names(data, "ops", "scope")[row] == "jit(f)/layer_0/tanh"
    assert _names(data, "ops", "location")[row] == "model.py:8:3"


def test_transfers_say_what_moves_and_how_often():
    """The all-reduce of the second product is there, with its bytes and its tensor."""
    data = _data(TWO_LAYERS)
    transfers = data["runs"][0]["transfers"]
    assert [data["strings"][kind] for kind in transfers["kind"]] == ["all_reduce"]
    # A ring of 2 devices sends half of what one holds, twice.
    assert transfers["bytes"] == [16 // 4 * 32 * 4]
    assert transfers["number"] == [0]
    assert _names(data, "ops", "name")[data["values"]["op"][transfers["value"][0]]] == "stablehlo.dot_general"


def test_bodies_of_loops_are_groups():
    """A loop is a group with its regions, whose ops are rows with the loop around them."""
    data = _data(LOOP)
    names, groups = _names(data, "ops", "name"), _names(data, "groups", "kind")
    body = data["ops"]["body"][names.index("stablehlo.while")]
    assert groups[body] == "loop"
    around = data["ops"]["group"][names.index("stablehlo.sine")]
    while data["groups"]["parent"][around] >= 0 and around != body:
        around = data["groups"]["parent"][around]
    assert around == body


def test_replays_end_with_what_propagation_finds():
    """The start and all changes in order give the shardings of the end; moves name slots that have annotations."""
    data = _data(TWO_LAYERS)
    replay = data["runs"][0]["replay"]
    current = list(replay["start"])
    for changes in replay["updates"]["changes"]:
        for slot, sharding in zip(changes[::2], changes[1::2], strict=True):
            assert current[slot] != sharding
            current[slot] = sharding
    names = {data["strings"][name]: slot for slot, name in enumerate(data["slots"])}
    dims = [data["shardings"][current[names[name]]]["dims"] for name in ("%0", "%2")]
    assert dims == [[[["data", 1, 4]], [["model", 1, 2]]], [[["data", 1, 4]], []]]


def test_two_orders_have_a_run_each():
    """The same rows carry the shardings of both orders, and these differ where the orders do."""
    data = _data(RIVALS, against="elementwise-first", schedule="contractions-first")
    first, second = data["runs"]
    assert [run["name"] for run in data["runs"]] == ["contractions-first", "elementwise-first"]
    assert len(first["shardings"]) == len(second["shardings"]) == len(data["values"]["id"])
    texts = [[data["shardings"][n]["text"] if n >= 0 else "" for n in run["shardings"]] for run in data["runs"]]
    assert texts[0] != texts[1]


def test_refusals_name_the_reason_and_the_obstacle():
    """An axis that two tensors want is refused somewhere, with a reason that the page explains."""
    data = _data(RIVALS)
    refusals = data["runs"][0]["replay"]["refusals"]
    reasons = {data["strings"][reason] for reason in refusals["reason"]}
    assert reasons
    assert reasons <= set(data["reasons"])


def test_memory_is_held_from_the_first_to_the_last_use():
    """Arguments are held all the time; what lives at an op is part of the bytes there, whose most is the peak."""
    data = _data(TWO_LAYERS)
    memory = data["runs"][0]["memory"]
    assert max(memory["bytes"]) == data["runs"][0]["quantities"]["peak_bytes"]["value"]
    for position, total in enumerate(memory["bytes"][:-1]):
        lives = zip(memory["held"], memory["from"], memory["to"], strict=True)
        assert total >= sum(held for held, start, stop in lives if start <= position <= stop) > 0
    arguments = [value for value, start in zip(memory["value"], memory["from"], strict=True) if start == 0][:3]
    assert all(memory["to"][memory["value"].index(value)] == len(memory["bytes"]) - 1 for value in arguments)


def test_proposals_are_priced_by_solving_again():
    """For the transfers that send most other annotations are tried; each says what is sent before and after."""
    data = _data(RIVALS, proposals=2)
    assert data["proposals"]
    sent = data["runs"][0]["quantities"]["communication_bytes"]["value"]
    for item in data["proposals"]:
        assert item["before"]["sent"] == sent
        assert item["useful"] == (item["after"]["sent"] < sent)
    assert _data(RIVALS, proposals=0)["proposals"] == []


def test_machines_give_times():
    """With a machine transfers have seconds, without one they have none."""
    assert _data(TWO_LAYERS)["runs"][0]["transfers"]["seconds"] == [None]
    with_machine = _data(TWO_LAYERS, machine="cpu-8")
    assert with_machine["runs"][0]["transfers"]["seconds"][0] > 0
    assert with_machine["machine"]


def test_the_computing_of_all_ops_is_that_of_the_program():
    """Times and operations by op add up to those of the cost, collectives aside; times need a machine."""
    data = _data(TWO_LAYERS, machine="cpu-8")
    run = data["runs"][0]
    assert sum(run["seconds"]) == pytest.approx(run["quantities"]["compute_seconds"]["value"])
    # The additions of the all-reduce are not those of an op of the page.
    assert sum(run["flops"]) == pytest.approx(run["quantities"]["flops"]["value"] - 4 * 32)
    product = _names(data, "ops", "name").index("stablehlo.dot_general")
    assert run["flops"][product] >= 2 * 4 * 32 * 32
    assert _data(TWO_LAYERS)["runs"][0]["seconds"] is None


def test_pages_are_one_file_with_their_data():
    """The same program gives the same page; the page holds its data, and nothing that ends a script early."""
    pages = [explore(SessionArguments(TWO_LAYERS), ExploreOptions(title="a <b>")) for _ in range(2)]
    html = pages[0].html
    assert html == pages[1].html
    assert "<title>a &lt;b&gt;</title>" in html
    assert html.count("</script>") == 2
    packed = html.partition('id="data">')[2].partition("<")[0]
    assert json.loads(zlib.decompress(b64decode(packed), 31)) == json.loads(json.dumps(pages[0].data))
