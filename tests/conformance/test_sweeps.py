"""Sweeps over a large program, in processes and on a cluster."""

from __future__ import annotations

import gzip

import pytest

from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import compare_schedules
from tests.conformance.conformance_data import DATA, need
from tests.conformance.sample import IS_WHOLE

pytestmark = pytest.mark.conformance

PROGRAM = "programs/hf_llama16_train.mlir.gz"
RANDOM = 20 if IS_WHOLE else 4
OPTIONS = {"random": RANDOM, "machine": "h100-2x8"}


def text() -> str:
    """Return the program: 8,700 ops."""
    need(PROGRAM)
    return gzip.decompress((DATA / PROGRAM).read_bytes()).decode()


def test_processes_and_a_cluster_find_the_same() -> None:
    """Two processes of this machine and a dask.distributed cluster of two give the same rows."""
    distributed, joblib = pytest.importorskip("dask.distributed"), pytest.importorskip("joblib")
    module = text()
    processes = compare_schedules(module, jobs=2, **OPTIONS)
    assert len(processes.rows) == RANDOM + 6
    cluster_options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**cluster_options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert compare_schedules(module, **OPTIONS) == processes


def test_a_session_that_evaluated_many_finds_what_a_fresh_one_finds() -> None:
    """What earlier schedules left behind in a session changes nothing: memos, interned shardings, rules."""
    module = text()
    worst = compare_schedules(module, **OPTIONS).rows[-1]
    fresh = compare_schedules(
        Session.open(module, like="jit"), ["default", worst.parsed_schedule()], machine=OPTIONS["machine"]
    )
    row = fresh.row("schedule 1")
    assert (row.seconds, row.peak_bytes, row.collectives) == (worst.seconds, worst.peak_bytes, worst.collectives)
    assert row.values_changed == worst.values_changed
