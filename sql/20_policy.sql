-- Policy: which limit holds for which action.
--
-- What:  lookups over jobwarden.policy, and the distinct actions of the running and the finished.
-- Why:   limits are data: changing one never changes a schedule's command, and holds at once for
--        jobs that run already. The actions are found by hopping along the partial index, one
--        probe each, so that a sweep costs as much as there are actions, not jobs. A hop comes
--        down to the newest job of an action: the old end is full of those that went.
-- Who:   stuck() and expired().

-- The row of an action, or the one of '*'. No row at all: never rescued, kept for ever.
CREATE OR REPLACE FUNCTION jobwarden.policy_of(p_action text) RETURNS jobwarden.policy
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT p FROM jobwarden.policy p WHERE p.action IN (p_action, '*')
  ORDER BY p.action = '*' LIMIT 1
$$;

CREATE OR REPLACE FUNCTION jobwarden.running_actions() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE hop AS (
    (SELECT j.action FROM jobwarden.job j WHERE j.is_running
     ORDER BY j.action DESC, j.started_at DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT j.action FROM jobwarden.job j WHERE j.is_running AND j.action < hop.action
            ORDER BY j.action DESC, j.started_at DESC LIMIT 1)
    FROM hop WHERE hop.action IS NOT NULL
  )
  SELECT hop.action FROM hop WHERE hop.action IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION jobwarden.finished_actions() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE hop AS (
    (SELECT j.action FROM jobwarden.job j WHERE j.is_terminal
     ORDER BY j.action DESC, j.completed_at DESC LIMIT 1)
    UNION ALL
    SELECT (SELECT j.action FROM jobwarden.job j WHERE j.is_terminal AND j.action < hop.action
            ORDER BY j.action DESC, j.completed_at DESC LIMIT 1)
    FROM hop WHERE hop.action IS NOT NULL
  )
  SELECT hop.action FROM hop WHERE hop.action IS NOT NULL
$$;

-- "10 min", "1 h", "90 s": the largest unit that divides it; as durations.human writes it.
CREATE OR REPLACE FUNCTION jobwarden.human(p_length interval) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
  SELECT CASE
    WHEN s = 0 THEN '0 s'
    WHEN s <> pg_catalog.trunc(s) THEN pg_catalog.trim_scale(s)::text || ' s'
    WHEN s % 86400 = 0 THEN (s / 86400)::bigint || ' d'
    WHEN s % 3600 = 0 THEN (s / 3600)::bigint || ' h'
    WHEN s % 60 = 0 THEN (s / 60)::bigint || ' min'
    ELSE s::bigint || ' s'
  END
  FROM (SELECT extract(epoch FROM p_length)::numeric AS s) AS length
$$;

-- How long ago, as somebody would say it: whole days of days, whole hours of hours.
CREATE OR REPLACE FUNCTION jobwarden.ago(p_length interval) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$
  SELECT jobwarden.human(pg_catalog.make_interval(secs => (pg_catalog.trunc(s / unit) * unit)::double precision))
  FROM (SELECT extract(epoch FROM p_length)::numeric AS s) AS length
  CROSS JOIN LATERAL (
    SELECT CASE WHEN s >= 172800 THEN 86400 WHEN s >= 7200 THEN 3600 WHEN s >= 120 THEN 60 ELSE 1 END AS unit
  ) AS fit
$$;

ALTER FUNCTION jobwarden.policy_of(text) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.running_actions() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.finished_actions() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.human(interval) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.ago(interval) OWNER TO jobwarden_owner;
