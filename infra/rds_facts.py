"""Facts about RDS and Aurora PostgreSQL: parameters, libraries, sizes. Tables only.

Sources: the RDS user guide, "Working with parameters on your RDS for PostgreSQL DB instance" (what
is static, and that a value is in PostgreSQL's own unit) and "Scheduling maintenance with the
PostgreSQL pg_cron extension"; the Aurora user guide, "Aurora PostgreSQL parameters"; for the names
these lists leave out, ``pg_settings`` of PostgreSQL 15 (a parameter of context ``postmaster`` is
static). A parameter that only some releases have is refused by AWS itself where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STATIC: Final = True
DYNAMIC: Final = False
PLAIN: Final = ""

# By (static, unit): the unit a bare number has; "bool" for a switch, which AWS wants as 1 or 0.
_NAMES: Final = {
    (DYNAMIC, PLAIN): """
        application_name autovacuum_analyze_scale_factor autovacuum_analyze_threshold
        autovacuum_vacuum_cost_limit autovacuum_vacuum_insert_scale_factor
        autovacuum_vacuum_insert_threshold autovacuum_vacuum_scale_factor
        autovacuum_vacuum_threshold backslash_quote bgwriter_lru_maxpages
        bgwriter_lru_multiplier bytea_output checkpoint_completion_target client_encoding
        client_min_messages commit_delay commit_siblings compute_query_id constraint_exclusion
        cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction datestyle
        default_statistics_target default_toast_compression default_transaction_isolation
        effective_io_concurrency extra_float_digits from_collapse_limit geqo_effort
        geqo_threshold gin_fuzzy_search_limit hash_mem_multiplier intervalstyle jit_above_cost
        join_collapse_limit lc_messages lc_monetary lc_numeric lc_time log_error_verbosity
        log_min_error_statement log_min_messages log_statement log_timezone
        maintenance_io_concurrency max_parallel_maintenance_workers max_parallel_workers
        max_parallel_workers_per_gather max_sync_workers_per_subscription parallel_setup_cost
        parallel_tuple_cost password_encryption plan_cache_mode random_page_cost
        rds.accepted_password_auth_method rds.allowed_delegated_extensions
        rds.allowed_extensions rds.force_admin_logging_level rds.force_autovacuum_logging_level
        search_path seq_page_cost session_replication_role synchronous_commit
        tcp_keepalives_count timezone track_functions vacuum_cost_limit vacuum_cost_page_dirty
        vacuum_cost_page_hit vacuum_cost_page_miss vacuum_failsafe_age vacuum_freeze_min_age
        vacuum_freeze_table_age vacuum_multixact_failsafe_age wal_compression xmlbinary
        xmloption
    """,
    (DYNAMIC, "8kB"): """
        effective_cache_size min_parallel_index_scan_size min_parallel_table_scan_size
        temp_buffers
    """,
    (DYNAMIC, "B"): """
        log_parameter_max_length log_parameter_max_length_on_error
    """,
    (DYNAMIC, "MB"): """
        max_slot_wal_keep_size max_wal_size min_wal_size
    """,
    (DYNAMIC, "bool"): """
        array_nulls autovacuum check_function_bodies default_transaction_deferrable
        default_transaction_read_only enable_bitmapscan enable_gathermerge enable_hashagg
        enable_hashjoin enable_incremental_sort enable_indexonlyscan enable_indexscan
        enable_material enable_memoize enable_mergejoin enable_nestloop enable_parallel_append
        enable_parallel_hash enable_partitionwise_aggregate enable_partitionwise_join
        enable_seqscan enable_sort enable_tidscan escape_string_warning geqo
        hot_standby_feedback jit log_checkpoints log_connections log_disconnections log_duration
        log_executor_stats log_hostname log_lock_waits log_parser_stats log_planner_stats
        log_replication_commands log_statement_stats quote_all_identifiers
        rds.adaptive_autovacuum rds.force_ssl standard_conforming_strings synchronize_seqscans
        track_activities track_counts track_io_timing track_wal_io_timing transform_null_equals
        update_process_title
    """,
    (DYNAMIC, "kB"): """
        autovacuum_work_mem log_rotation_size log_temp_files logical_decoding_work_mem
        maintenance_work_mem max_stack_depth work_mem
    """,
    (DYNAMIC, "min"): """
        log_rotation_age rds.log_retention_period
    """,
    (DYNAMIC, "ms"): """
        autovacuum_vacuum_cost_delay bgwriter_delay client_connection_check_interval
        deadlock_timeout idle_in_transaction_session_timeout idle_session_timeout lock_timeout
        log_autovacuum_min_duration log_min_duration_statement max_standby_archive_delay
        max_standby_streaming_delay statement_timeout tcp_user_timeout vacuum_cost_delay
        wal_receiver_timeout wal_sender_timeout wal_writer_delay
    """,
    (DYNAMIC, "s"): """
        authentication_timeout autovacuum_naptime checkpoint_timeout checkpoint_warning
        tcp_keepalives_idle tcp_keepalives_interval wal_receiver_status_interval
    """,
    (STATIC, PLAIN): """
        autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age
        huge_pages max_connections max_files_per_process max_locks_per_transaction
        max_logical_replication_workers max_pred_locks_per_transaction max_prepared_transactions
        max_replication_slots max_wal_senders max_worker_processes
    """,
    (STATIC, "8kB"): """
        shared_buffers wal_buffers
    """,
    (STATIC, "B"): """
        track_activity_query_size
    """,
    (STATIC, "bool"): """
        rds.enable_plan_management rds.logical_replication rds.restrict_password_commands
        track_commit_timestamp
    """,
    (STATIC, "kB"): """
        temp_file_limit
    """,
}

# Of each parameter: whether it is static, and its unit.
PARAMETERS: Final[Mapping[str, tuple[bool, str]]] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
)

# Libraries our table of extensions knows and AWS does not offer.
NOT_OFFERED: Final = frozenset({"citus", "pg_stat_kcache", "timescaledb"})

# Bytes, or microseconds, in each unit that PostgreSQL reads behind a number.
MEMORY: Final = MappingProxyType(
    {"B": 1, "kB": 2**10, "8kB": 2**13, "MB": 2**20, "GB": 2**30, "TB": 2**40}
)
TIME: Final = MappingProxyType(
    {
        "us": 1,
        "ms": 1_000,
        "s": 1_000_000,
        "min": 60_000_000,
        "h": 3_600_000_000,
        "d": 86_400_000_000,
    }
)

# The formula of the default parameter groups: GREATEST(vCPUs * 2, 8).
FEWEST_WORKERS: Final = 8
WORKERS_PER_VCPU: Final = 2
# Of pg_cron with background workers, the only mode on RDS.
RUNNING_JOBS: Final = 5

# "Supported DB engines for Performance Insights": not on these sizes of the burstable classes.
WITHOUT_INSIGHTS: Final = frozenset(
    f"db.{line}.{size}" for line in ("t2", "t3", "t4g") for size in ("micro", "small")
)
