"""The benchmark of the sweep runs and reports; how quick it is on this machine is not asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

from infra.errors import InfraError
from infra.local.servers import find_server


def test_the_benchmark_prints_its_ratio(missing: Callable[[str], NoReturn]) -> None:
    try:
        find_server()
    except InfraError as error:
        missing(str(error))
    words = ["--rows", "20000", "--running", "200", "--stale", "20", "--rounds", "2", "--json"]

    done = subprocess.run(
        [sys.executable, "bench/sweep.py", *words], capture_output=True, text=True, check=True
    )

    document = json.loads(done.stdout)
    assert (document["rows"], document["stale"]) == (20000, 20)
    assert document["ratios"]["plain_update_no_index"] > 0
    assert all(value > 0 for value in document["median_ms"].values())
