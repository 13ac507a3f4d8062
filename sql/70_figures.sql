-- Figures: what a dashboard plots, one row a sample.
--
-- What:  figures() returns (name, labels, value). Names and units are OpenMetrics': seconds, counts.
--        would_take() counts the jobs that the next runs take if other limits held.
-- Why:   `jobwarden metrics` prints them as they are, and so can any exporter that reads SQL.
-- Who:   jobwarden metrics, status, report and preview, by the read-only role.

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
  SELECT 'jobwarden_schedule_interval_seconds',
         jsonb_build_object('kind', CASE s.command WHEN 'CALL jobwarden.sweep()' THEN 'sweep' ELSE 'cleanup' END),
         extract(epoch FROM s.every)::float8
  FROM jobwarden.schedule s WHERE s.command IN ('CALL jobwarden.sweep()', 'CALL jobwarden.cleanup()')
  UNION ALL
  SELECT 'jobwarden_running_limit_seconds', jsonb_build_object('action', running.action),
         extract(epoch FROM limits.timeout)::float8
  FROM running CROSS JOIN LATERAL jobwarden.policy_of(running.action) AS limits WHERE limits.timeout IS NOT NULL
  UNION ALL
  SELECT 'jobwarden_oldest_waiting_alert_seconds', jsonb_build_object('route', a.route),
         extract(epoch FROM clock.now - min(a.made_at))::float8
  FROM clock, jobwarden.alert a WHERE a.state = 'waiting' GROUP BY a.route, clock.now
  UNION ALL
  SELECT 'jobwarden_dead_alerts_last_day', '{}'::jsonb, count(*)::float8
  FROM clock, jobwarden.alert a WHERE a.state = 'dead' AND a.made_at > clock.now - interval '1 day'
  UNION ALL
  SELECT 'jobwarden_failures_last_hour', jsonb_build_object('code', left(e.code, 100), 'action', e.action),
         count(*)::float8
  FROM clock, jobwarden.event e WHERE e.at > clock.now - interval '1 hour'
  GROUP BY left(e.code, 100), e.action
$$;

-- How many jobs the next sweep and the next cleanup would take with the limits of p_policy, which is
-- {"*": {"timeout": "10 min", "retention": null}, action: ...}; null is no limit. By action, each
-- counted up to p_cap. Read-only. A sweep's rule is that of stuck(), a cleanup's that of expired().
CREATE OR REPLACE FUNCTION jobwarden.would_take(p_policy jsonb, p_cap int DEFAULT 10000)
RETURNS TABLE (kind text, action text, jobs bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
  WITH clock AS MATERIALIZED (SELECT jobwarden.now() AS now),
  outage AS MATERIALIZED (
    SELECT o.ended_at, o.ended_at - o.started_at AS length
    FROM jobwarden.outage o ORDER BY o.ended_at DESC LIMIT 1
  )
  SELECT 'sweep', running.action, due.jobs
  FROM clock
  CROSS JOIN jobwarden.running_actions() AS running (action)
  CROSS JOIN LATERAL (
    SELECT (coalesce(p_policy -> running.action, p_policy -> '*') ->> 'timeout')::interval AS timeout
  ) AS limits
  LEFT JOIN outage ON true
  CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
      SELECT FROM jobwarden.job j
      WHERE j.is_running AND j.action = running.action
        AND j.started_at < clock.now - limits.timeout
        AND (outage.ended_at IS NULL OR j.started_at >= outage.ended_at
             OR j.started_at < clock.now - limits.timeout - least(outage.length, limits.timeout))
      LIMIT p_cap
    ) AS j
  ) AS due
  UNION ALL
  SELECT 'cleanup', finished.action, old.jobs
  FROM clock
  CROSS JOIN jobwarden.finished_actions() AS finished (action)
  CROSS JOIN LATERAL (
    SELECT (coalesce(p_policy -> finished.action, p_policy -> '*') ->> 'retention')::interval AS retention
  ) AS limits
  CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
      SELECT FROM jobwarden.job j
      WHERE j.is_terminal AND j.action = finished.action
        AND j.completed_at < clock.now - limits.retention
      LIMIT p_cap
    ) AS j
  ) AS old
$$;

ALTER FUNCTION jobwarden.figures() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.would_take(jsonb, int) OWNER TO jobwarden_owner;
