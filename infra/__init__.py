"""Jobwarden: Postgres is the watchdog. In reading order:

errors      InfraError and its few children
durations   "10m" <-> timedelta <-> "10 min"
cronexpr    what a given pg_cron honours, and when it fires next
extensions  what each extension needs: preload, settings, CREATE EXTENSION
preload     shared_preload_libraries: parsed, merged, rendered
rds         parameter groups of AWS: family, parameters and how each is applied; rds_facts: tables
schedules   our schedules, once; what a user's schedule may be
config      the models of an environment; every fault at once
observed    what is there: one read-only query, one JSON document, its parser
plan        build(config) -> Plan; diff(plan, observed) -> changes
checks      what would keep the schedules from firing, and the way out
rights      what the connecting role lacks for an apply, as SQL
shares      what one resource of Pulumi applies of a plan
sqltext     all SQL that is ever sent: sql/*.sql for one environment
stackvalues what Pulumi writes, as values
stackfile   the only reader of YAML
db/         carries the query and the statements by psycopg
aws/        parameter groups, databases and reboots of AWS, by pulumi_aws and boto3
stack/      the Pulumi program: aws and the final step as resources
boxes       a box as it was found; box_*, units: what is to be done on it, stage by stage
box/        carries that over ssh by pyinfra
local/      a private cluster, the demo
rows        what a preview found; severity, pulumi_plan, since_base, cells, page: judged, rendered
preview/    runs the tools of all stacks at the same time, for one page
script      a first apply as one text for psql
terminal    what people see
cli/        joins them

Files are pure, folders touch the world; each imports only what stands above it.
import-linter holds the arrows (`pyproject.toml`).
"""
