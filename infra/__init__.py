"""Jobwarden: Postgres is the watchdog. In reading order:

errors      InfraError and its few children
durations   "10m" <-> timedelta <-> "10 min"
cronexpr    what a given pg_cron honours, and when it fires next
extensions  what each extension needs: preload, settings, CREATE EXTENSION
preload     shared_preload_libraries: parsed, merged, rendered
schedules   our schedules, once; what a user's schedule may be
config      the models of an environment; every fault at once
observed    what is there: one read-only query, one JSON document, its parser
plan        build(config) -> Plan; diff(plan, observed) -> changes
checks      what would keep the schedules from firing, and the way out
rights      what the connecting role lacks for an apply, as SQL
sqltext     all SQL that is ever sent: sql/*.sql for one environment
stackfile   the only reader of YAML
db/         carries the query and the statements by psycopg
local/      a private cluster, the demo
script      a first apply as one text for psql
terminal    what people see
cli/        joins them

Files are pure, folders touch the world; each imports only what stands above it.
import-linter holds the arrows (`pyproject.toml`).
"""
