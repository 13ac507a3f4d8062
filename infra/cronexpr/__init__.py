"""Cron schedules as pg_cron reads them: what a given version honours, and when it fires next.

Pure, like the modules around it; in parts, in reading order: ``fields`` (one field), ``grammar`` (a
whole schedule), ``times`` (fire times), ``cautions`` (what is legal and still surprises).

pg_cron silently takes some schedules for others (a sixth field is ignored, ``*/90`` is minute 0).
Those are refused here.
"""

from infra.cronexpr.cautions import warnings
from infra.cronexpr.grammar import Cron, Fields, parse, parse_version
from infra.cronexpr.times import load_zone, longest_gap, next_fires, running_zone

__all__ = [
    "Cron",
    "Fields",
    "load_zone",
    "longest_gap",
    "next_fires",
    "parse",
    "parse_version",
    "running_zone",
    "warnings",
]
