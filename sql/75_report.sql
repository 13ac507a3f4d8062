-- The report: what the page of `jobwarden report` draws, as one document.
--
-- What:  report(hours) returns one JSON document: jobs, failures, runs and alerts of these hours in
--        48 slices of time, and what runs now.
-- Why:   one read-only call in one snapshot, so that the numbers of a page agree with each other.
-- Who:   jobwarden report, by the read-only role. It reads the whole jobs table once.

CREATE OR REPLACE FUNCTION jobwarden.report(p_hours int DEFAULT 24) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
AS $$
  WITH clock AS MATERIALIZED (
    SELECT c.now, c.now - p_hours * interval '1 hour' AS start,
           extract(epoch FROM p_hours * interval '1 hour') / 48 AS width
    FROM (SELECT jobwarden.now() AS now) AS c
  ), seen AS MATERIALIZED (
    SELECT j.is_running, j.is_terminal, j.status = jobwarden.failed_state() AS failed,
           CASE WHEN j.started_at > clock.start
                THEN least(floor(extract(epoch FROM j.started_at - clock.start) / clock.width), 47)::int END AS started,
           CASE WHEN j.is_terminal AND j.completed_at > clock.start
                THEN least(floor(extract(epoch FROM j.completed_at - clock.start) / clock.width), 47)::int END AS ended,
           j.started_at IS NOT NULL AS ran
    FROM clock, jobwarden.job j
  ), jobs AS (
    SELECT count(*) FILTER (WHERE NOT s.is_running AND NOT s.is_terminal) AS queued,
           count(*) FILTER (WHERE s.is_running) AS running,
           count(*) FILTER (WHERE s.ended IS NOT NULL AND NOT s.failed) AS done,
           count(*) FILTER (WHERE s.ended IS NOT NULL AND s.failed) AS failed
    FROM seen s
  ), slices AS (
    SELECT n.slice,
           (SELECT count(*) FROM seen s WHERE s.started = n.slice) AS started,
           (SELECT count(*) FROM seen s WHERE s.ended = n.slice AND s.ran) AS left_running,
           (SELECT count(*) FROM seen s WHERE s.ended = n.slice AND NOT s.failed) AS done,
           (SELECT count(*) FROM seen s WHERE s.ended = n.slice AND s.failed) AS failed
    FROM generate_series(0, 47) AS n (slice)
  ), failures AS (
    SELECT left(e.code, 100) AS code, coalesce(left(e.action, 100), '') AS action,
           least(floor(extract(epoch FROM e.at - clock.start) / clock.width), 47)::int AS slice, count(*) AS jobs
    FROM clock, jobwarden.event e WHERE e.at > clock.start
    GROUP BY 1, 2, 3
  ), runs AS (
    SELECT r.kind, r.started_at, r.outcome, r.changed, r.message,
           extract(epoch FROM r.ended_at - r.started_at)::float8 AS seconds
    FROM clock, jobwarden.run r WHERE r.started_at > clock.start
    ORDER BY r.id DESC LIMIT 1000
  ), ages AS (
    SELECT r.action, r.jobs,
           extract(epoch FROM (jobwarden.policy_of(r.action)).timeout)::float8 AS timeout,
           ARRAY(SELECT greatest(extract(epoch FROM clock.now - j.started_at), 0)::float8
                 FROM jobwarden.job j WHERE j.is_running AND j.action = r.action AND isfinite(j.started_at)
                 ORDER BY j.started_at LIMIT 200) AS seconds
    FROM clock, jobwarden.running() AS r
  ), told AS (
    SELECT a.route, a.state, count(*) AS alerts
    FROM clock, jobwarden.alert a WHERE a.made_at > clock.start GROUP BY a.route, a.state
  ), dead AS (
    SELECT a.route, a.code, a.ended_at, a.reason
    FROM clock, jobwarden.alert a WHERE a.state = 'dead' AND a.made_at > clock.start
    ORDER BY a.id DESC LIMIT 20
  )
  SELECT jsonb_build_object(
    'now', clock.now, 'start', clock.start, 'hours', p_hours, 'database', current_database(),
    'jobs', (SELECT to_jsonb(jobs) FROM jobs),
    'slices', (SELECT jsonb_agg(to_jsonb(slices) ORDER BY slices.slice) FROM slices),
    'failures', (SELECT coalesce(jsonb_agg(to_jsonb(failures)), '[]') FROM failures),
    'runs', (SELECT coalesce(jsonb_agg(to_jsonb(runs) ORDER BY runs.started_at), '[]') FROM runs),
    'ages', (SELECT coalesce(jsonb_agg(to_jsonb(ages) ORDER BY ages.action), '[]') FROM ages),
    'alerts', (SELECT coalesce(jsonb_agg(to_jsonb(told) ORDER BY told.route, told.state), '[]') FROM told),
    'dead', (SELECT coalesce(jsonb_agg(to_jsonb(dead)), '[]') FROM dead))
  FROM clock
$$;

ALTER FUNCTION jobwarden.report(int) OWNER TO jobwarden_owner;
