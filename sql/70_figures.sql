-- Figures: what a dashboard plots, one row a sample.
--
-- What:  figures() returns (name, labels, value). Names and units are OpenMetrics': seconds, counts.
-- Why:   `jobwarden metrics` prints them as they are, and so can any exporter that reads SQL.
-- Who:   jobwarden metrics, status and report, by the read-only role.

CREATE OR REPLACE FUNCTION jobwarden.figures() RETURNS TABLE (name text, labels jsonb, value double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  WITH clock AS MATERIALIZED (SELECT jobwarden.now() AS now),
  running AS MATERIALIZED (SELECT r.* FROM jobwarden.running() AS r),
  last_run AS MATERIALIZED (
    SELECT DISTINCT ON (r.kind) r.* FROM jobwarden.run r
    WHERE r.outcome IN ('ok', 'partial') ORDER BY r.kind, r.id DESC
  )
  SELECT 'jobwarden_running_jobs', jsonb_build_object('action', running.action), running.jobs::float8
  FROM running
  UNION ALL
  SELECT 'jobwarden_oldest_running_seconds', jsonb_build_object('action', running.action),
         greatest(extract(epoch FROM clock.now - running.oldest), 0)::float8
  FROM clock, running WHERE running.oldest IS NOT NULL
  UNION ALL
  SELECT 'jobwarden_overdue_jobs', '{}'::jsonb, count(*)::float8
  FROM clock, jobwarden.stuck(clock.now, 1000)
  UNION ALL
  SELECT 'jobwarden_last_success_timestamp_seconds', jsonb_build_object('kind', last_run.kind),
         extract(epoch FROM last_run.ended_at)::float8
  FROM last_run
  UNION ALL
  SELECT 'jobwarden_last_run_duration_seconds', jsonb_build_object('kind', last_run.kind),
         extract(epoch FROM last_run.ended_at - last_run.started_at)::float8
  FROM last_run
  UNION ALL
  SELECT 'jobwarden_last_run_changed_jobs', jsonb_build_object('kind', last_run.kind), last_run.changed::float8
  FROM last_run
  UNION ALL
  SELECT 'jobwarden_last_run_poisoned_jobs', jsonb_build_object('kind', last_run.kind), last_run.poisoned::float8
  FROM last_run
  UNION ALL
  SELECT 'jobwarden_failures_last_hour', jsonb_build_object('code', left(e.code, 100), 'action', e.action),
         count(*)::float8
  FROM clock, jobwarden.event e WHERE e.at > clock.now - interval '1 hour'
  GROUP BY left(e.code, 100), e.action
$$;

ALTER FUNCTION jobwarden.figures() OWNER TO jobwarden_owner;
