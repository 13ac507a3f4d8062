"""A `pulumi preview` of ours against one of an empty Python program, in one run.

    uv run --group managed python bench/preview.py --rounds 7 --json

The two take turns, so that a change of the machine's mood hits both. Ours declares the SQL, the
policy and the schedules of an environment with --schedules of its own; no database is there. The
figure that carries over is the difference: what this program adds to any preview.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 1.0


def main() -> None:
    """Make both projects, take turns, print the medians and their difference."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        projects = {
            "empty": _project(place / "empty", "", options.schedules),
            "ours": _project(place / "ours", (ROOT / "__main__.py").read_text(), options.schedules),
        }
        times: dict[str, list[float]] = {name: [] for name in projects}
        for _ in range(options.rounds + 1):
            for name, project in projects.items():
                times[name].append(_timed(project))
    _report({name: values[1:] for name, values in times.items()}, as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--schedules", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _project(folder: Path, program: str, schedules: int) -> Path:
    folder.mkdir()
    (folder / "__main__.py").write_text(program)
    (folder / "Pulumi.yaml").write_text("name: jobwarden\nruntime: python\n")
    _pulumi(folder, "stack", "init", "bench")
    entries = [
        {"name": f"report{number}", "schedule": "0 6 * * *", "command": f"SELECT {number}"}
        for number in range(schedules)
    ]
    _pulumi(folder, "config", "set", "jobwarden:schedules", json.dumps(entries))
    return folder


def _timed(project: Path) -> float:
    begin = time.perf_counter()
    _pulumi(project, "preview")
    return time.perf_counter() - begin


def _pulumi(project: Path, *arguments: str) -> None:
    paths = (Path(sys.executable).parent, ROOT / ".tooling/pulumi/bin", os.environ["PATH"])
    state = project / "state"
    state.mkdir(exist_ok=True)
    done = subprocess.run(
        ["pulumi", *arguments, "--non-interactive"],
        cwd=project,
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={
            **os.environ,
            "PATH": os.pathsep.join(map(str, paths)),
            "PYTHONPATH": str(ROOT),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "bench",
            "PULUMI_HOME": str(project / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
    )
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def _report(times: dict[str, list[float]], *, as_json: bool) -> None:
    medians = {name: round(statistics.median(values), 3) for name, values in times.items()}
    share = round(medians["ours"] - medians["empty"], 3)
    found = {
        "rounds": len(times["ours"]),
        "median_seconds": medians,
        "our_share_seconds": share,
        "limit_seconds": LIMIT_SECONDS,
    }
    if as_json:
        print(json.dumps(found))
    else:
        print(f"empty {medians['empty']:.2f} s, ours {medians['ours']:.2f} s: {share:.2f} s more")


if __name__ == "__main__":
    main()
