-- Health: who watches the watchdog.
--
-- What:  cron_jobs() and cron_runs() show our own rows of pg_cron to roles that may not read them,
--        scheduled() says whether pg_cron does the work, health() is one row per check.
-- Why:   pg_cron accepts a schedule that nothing will ever run, and a history without failures is
--        no proof: only a recent success is.
-- Who:   `jobwarden plan`, `status`, `metrics`, the fallback loop, and anybody with psql.

-- Owned by the runner, and run as it: pg_cron's row security then shows our jobs and no others.
-- NULL where there is no pg_cron. As text: the cron schema may be missing when this is made.
CREATE OR REPLACE FUNCTION jobwarden.cron_jobs() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_jobs jsonb;
BEGIN
  IF to_regclass('cron.job') IS NULL OR NOT has_schema_privilege('cron', 'USAGE') THEN
    RETURN NULL;
  END IF;
  EXECUTE 'SELECT coalesce(jsonb_agg(to_jsonb(j) ORDER BY j.jobid), ''[]'') FROM cron.job j'
    ' WHERE j.username = ''jobwarden_runner''' INTO v_jobs;
  RETURN v_jobs;
END
$$;

-- The last run of each of our jobs that came to an end, from the newest 1000 of ours.
CREATE OR REPLACE FUNCTION jobwarden.cron_runs() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_runs jsonb;
BEGIN
  IF to_regclass('cron.job_run_details') IS NULL OR NOT has_schema_privilege('cron', 'USAGE') THEN
    RETURN NULL;
  END IF;
  EXECUTE $runs$
    SELECT coalesce(jsonb_agg(to_jsonb(last)), '[]') FROM (
      SELECT DISTINCT ON (d.jobid) d.jobid, d.status, d.return_message, d.start_time, d.end_time
      FROM (SELECT * FROM cron.job_run_details WHERE username = 'jobwarden_runner'
            ORDER BY runid DESC LIMIT 1000) AS d
      WHERE d.status IN ('succeeded', 'failed')
      ORDER BY d.jobid, d.runid DESC
    ) AS last
  $runs$ INTO v_runs;
  RETURN v_runs;
END
$$;

-- What runs now, by action. Reads the running set only, through its index.
CREATE OR REPLACE FUNCTION jobwarden.running() RETURNS TABLE (action text, jobs bigint, oldest timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT j.action, count(*), min(j.started_at) FILTER (WHERE isfinite(j.started_at)) FROM jobwarden.job j
  WHERE j.is_running GROUP BY j.action ORDER BY j.action
$$;

-- The process that starts pg_cron's jobs, and the database it reads them from.
CREATE OR REPLACE FUNCTION jobwarden.launcher() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT a.datname FROM pg_stat_activity a WHERE a.application_name = 'pg_cron scheduler' LIMIT 1
$$;

-- True while pg_cron carries our active watchdog: the fallback loop then stays out of its way.
CREATE OR REPLACE FUNCTION jobwarden.scheduled() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT jobwarden.launcher() = current_database() AND EXISTS (
    SELECT FROM jsonb_to_recordset(jobwarden.cron_jobs()) AS c (jobid bigint, active boolean, command text)
    JOIN jobwarden.schedule s ON s.jobid = c.jobid
    WHERE c.active AND c.command = 'CALL jobwarden.sweep()')
$$;

-- level: ok, warning, critical or unknown. hint: what to do about it.
CREATE OR REPLACE FUNCTION jobwarden.health()
RETURNS TABLE ("check" text, level text, detail text, hint text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
  WITH clock AS MATERIALIZED (
    SELECT jobwarden.now() AS now, pg_postmaster_start_time() AS server_start
  ), carried AS (
    SELECT s.name, s.command, s.every, s.jobid, c.active, r.status, r.return_message, r.end_time
    FROM jobwarden.schedule s
    LEFT JOIN jsonb_to_recordset(jobwarden.cron_jobs()) AS c (jobid bigint, active boolean) ON c.jobid = s.jobid
    LEFT JOIN jsonb_to_recordset(jobwarden.cron_runs())
      AS r (jobid bigint, status text, return_message text, end_time timestamptz) ON r.jobid = s.jobid
  ), kinds AS (
    SELECT k.kind, s.every, s.jobid,
           (SELECT max(r.ended_at) FROM jobwarden.run r
            WHERE r.kind = k.kind AND r.outcome IN ('ok', 'partial')) AS last_success,
           (SELECT min(r.started_at) FROM jobwarden.run r WHERE r.kind = k.kind) AS first_seen
    FROM (VALUES ('sweep', 'CALL jobwarden.sweep()'), ('cleanup', 'CALL jobwarden.cleanup()')) AS k (kind, command)
    LEFT JOIN jobwarden.schedule s ON s.command = k.command
  ), overdue AS MATERIALIZED (
    SELECT count(*) AS jobs, min(s.started_at) AS oldest, max(clock.now - greatest(s.started_at, 'epoch') - s.timeout) AS late
    FROM clock, jobwarden.stuck(clock.now, 1000) AS s
  ), running AS MATERIALIZED (
    SELECT (SELECT count(*) FROM jobwarden.running_actions() AS a (action) CROSS JOIN LATERAL (
              SELECT FROM jobwarden.job j WHERE j.is_running AND j.action = a.action
                AND j.started_at > clock.now + interval '1 minute' LIMIT 1000) AS f) AS future,
           (SELECT count(*) FROM jobwarden.running_actions() AS a (action) CROSS JOIN LATERAL (
              SELECT FROM jobwarden.job j WHERE j.is_running AND j.action = a.action
                AND j.started_at IS NULL LIMIT 1000) AS f) AS no_start
    FROM clock
  ), flips AS (
    SELECT count(*) AS jobs FROM clock, jobwarden.event e
    JOIN jobwarden.job j ON j.id = e.job_id::uuid
    WHERE e.at > clock.now - interval '1 day' AND e.code = 'watchdog_timeout'
      AND j.status <> jobwarden.failed_state()
  ), last_sweep AS (
    SELECT r.* FROM jobwarden.run r WHERE r.kind = 'sweep' AND r.outcome IN ('ok', 'partial')
    ORDER BY r.id DESC LIMIT 1
  ), last_cleanup AS (
    SELECT r.* FROM jobwarden.run r WHERE r.kind = 'cleanup' AND r.outcome IN ('ok', 'partial')
    ORDER BY r.id DESC LIMIT 1
  ), cut AS (
    SELECT count(*) AS runs, max(r.started_at) AS latest FROM clock, jobwarden.run r
    WHERE r.started_at > clock.now - interval '1 day' AND r.outcome = 'interrupted'
  )
  SELECT 'last_' || k.kind,
         CASE WHEN k.every IS NULL THEN 'unknown'
              WHEN k.last_success > clock.now - 2 * k.every - interval '1 minute' THEN 'ok'
              WHEN k.last_success IS NULL AND clock.now - clock.server_start < 2 * k.every THEN 'ok'
              WHEN k.last_success IS NULL AND k.first_seen IS NULL THEN 'warning'
              ELSE 'critical' END,
         CASE WHEN k.last_success IS NULL THEN 'no ' || k.kind || ' has succeeded yet'
              ELSE 'last success ' || jobwarden.ago(clock.now - k.last_success) || ' ago' END
           || coalesce(', due every ' || jobwarden.human(k.every), ', not declared here'),
         'look at jobwarden.run and at the check "cron", then run it once: jobwarden run ' || k.kind
  FROM kinds k, clock
  UNION ALL
  SELECT 'cron',
         CASE WHEN NOT EXISTS (SELECT FROM carried WHERE carried.jobid IS NOT NULL) THEN 'unknown'
              WHEN jobwarden.launcher() IS NULL THEN 'critical'
              WHEN jobwarden.launcher() <> current_database() THEN 'critical'
              WHEN EXISTS (SELECT FROM carried WHERE carried.jobid IS NOT NULL AND carried.active IS NULL) THEN 'critical'
              WHEN EXISTS (SELECT FROM carried WHERE carried.status = 'failed') THEN 'critical'
              WHEN EXISTS (SELECT FROM carried WHERE NOT carried.active) THEN 'critical'
              ELSE 'ok' END,
         CASE WHEN NOT EXISTS (SELECT FROM carried WHERE carried.jobid IS NOT NULL) THEN 'no schedule is carried by pg_cron'
              WHEN jobwarden.launcher() IS NULL THEN 'the process "pg_cron scheduler" is not there'
              WHEN jobwarden.launcher() <> current_database() THEN 'pg_cron reads its jobs from database ' || jobwarden.launcher()
              ELSE (SELECT string_agg(carried.name || ': ' || CASE
                      WHEN carried.active IS NULL THEN 'gone from cron.job'
                      WHEN NOT carried.active THEN 'paused'
                      ELSE coalesce(carried.status, 'has not run yet')
                        || CASE WHEN carried.status = 'failed' THEN ' (' || coalesce(carried.return_message, '') || ')' ELSE '' END
                    END, '; ' ORDER BY carried.name) FROM carried WHERE carried.jobid IS NOT NULL) END,
         'jobwarden apply puts a schedule back, --resume wakes a paused one; a launcher that is gone needs a restart of Postgres'
  UNION ALL
  SELECT 'overdue',
         CASE WHEN overdue.jobs = 0 THEN 'ok'
              WHEN overdue.late > 2 * coalesce(k.every, interval '5 minutes') + interval '1 minute' THEN 'critical'
              ELSE 'ok' END,
         CASE WHEN overdue.jobs = 0 THEN 'no job is past its limit'
              ELSE overdue.jobs || CASE WHEN overdue.jobs = 1000 THEN ' or more' ELSE '' END
                || ' past the limit, the oldest since ' || jobwarden.ago(overdue.late) END,
         'the next sweep takes them: jobwarden run sweep'
  FROM overdue, kinds k WHERE k.kind = 'sweep'
  UNION ALL
  SELECT 'poisoned',
         CASE WHEN coalesce((SELECT l.poisoned FROM last_sweep l), 0) = 0 THEN 'ok' ELSE 'critical' END,
         coalesce((SELECT l.poisoned || ' jobs could not be written: ' || l.message || ' [' || l.sqlstate || ']'
                   FROM last_sweep l WHERE l.poisoned > 0), 'the last sweep could write all it picked'),
         'mend the rule of the table that refuses the write; the next sweep tries again'
  UNION ALL
  SELECT 'undeleted',
         CASE WHEN EXISTS (SELECT FROM last_cleanup l WHERE l.sqlstate IS NOT NULL) THEN 'warning' ELSE 'ok' END,
         coalesce((SELECT l.poisoned || ' finished jobs could not be deleted: ' || l.message || ' [' || l.sqlstate || ']'
                   FROM last_cleanup l WHERE l.sqlstate IS NOT NULL), 'the last cleanup could delete all it picked'),
         'delete what refers to them, or let the reference say ON DELETE CASCADE; the next cleanup tries again'
  UNION ALL
  SELECT 'clocks',
         CASE WHEN running.future + running.no_start = 0 THEN 'ok' ELSE 'warning' END,
         running.future || ' running jobs start in the future, ' || running.no_start || ' have no start',
         'let the database set started_at: UPDATE ... SET status = ''running'' is enough'
  FROM running
  UNION ALL
  SELECT 'late_writes',
         CASE WHEN flips.jobs = 0 THEN 'ok' ELSE 'warning' END,
         flips.jobs || ' rescued jobs of the last day were changed again by a late worker',
         'jobs.guard: true makes finished jobs final'
  FROM flips
  UNION ALL
  SELECT 'interrupted',
         CASE WHEN cut.runs = 0 THEN 'ok' ELSE 'warning' END,
         CASE WHEN cut.runs = 0 THEN 'no run was cut off in the last day'
              ELSE cut.runs || ' runs were cut off in the last day, the latest of '
                || to_char(cut.latest AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC' END,
         'what they had done stays; the run after each went on'
  FROM cut
$$;

DO $$
DECLARE
  v_name text;
BEGIN
  -- A new owner must be allowed to create here, but for the moment of the change only.
  GRANT CREATE, USAGE ON SCHEMA jobwarden TO jobwarden_runner;
  FOREACH v_name IN ARRAY ARRAY['cron_jobs', 'cron_runs'] LOOP
    EXECUTE pg_catalog.format('ALTER FUNCTION jobwarden.%I() OWNER TO jobwarden_runner', v_name);
  END LOOP;
  REVOKE CREATE ON SCHEMA jobwarden FROM jobwarden_runner;
  FOREACH v_name IN ARRAY ARRAY['running', 'launcher', 'scheduled', 'health'] LOOP
    EXECUTE pg_catalog.format('ALTER FUNCTION jobwarden.%I() OWNER TO jobwarden_owner', v_name);
  END LOOP;
END
$$;
