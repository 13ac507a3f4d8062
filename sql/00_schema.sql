-- Schema jobwarden: roles, tables, and the one clock.
--
-- What:  five roles, the schema, the tables that policy, runs and events are kept in, and now().
-- Why:   everything of ours lives in one schema, so that removing it touches nothing else.
-- Who:   applied by `jobwarden apply` and `jobwarden boot`; safe to run again at any time.
--
-- Roles: jobwarden_owner     owns our objects, nobody logs in as it
--        jobwarden_runner    the schedules run as it; it may call sweep() and cleanup(), no more
--        jobwarden_worker    for your workers: insert, read and update jobs
--        jobwarden_readonly  enough for plan, status and metrics
--        jobwarden_alerts    takes alerts and settles them, for `jobwarden alerts run`

DO $$
DECLARE
  v_role text;
BEGIN
  FOREACH v_role IN ARRAY ARRAY['jobwarden_owner', 'jobwarden_runner', 'jobwarden_worker', 'jobwarden_readonly', 'jobwarden_alerts'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = v_role) THEN
      BEGIN
        EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', v_role);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;  -- another database of this cluster made it at the same time
      END;
    END IF;
  END LOOP;
  -- pg_cron starts no job of a role that cannot log in. No password: nobody gets in by one.
  IF NOT (SELECT r.rolcanlogin FROM pg_catalog.pg_roles r WHERE r.rolname = 'jobwarden_runner') THEN
    ALTER ROLE jobwarden_runner LOGIN;
  END IF;
  -- Whoever applies, and is no superuser, must be able to act for the owner and the runner.
  IF NOT (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
    FOREACH v_role IN ARRAY ARRAY['jobwarden_owner', 'jobwarden_runner'] LOOP
      IF pg_catalog.current_setting('server_version_num')::int >= 160000 THEN
        IF NOT pg_catalog.pg_has_role(current_user, v_role, 'SET')
           OR NOT pg_catalog.pg_has_role(current_user, v_role, 'USAGE') THEN
          EXECUTE pg_catalog.format('GRANT %I TO %I WITH SET TRUE, INHERIT TRUE', v_role, current_user);
        END IF;
      ELSIF NOT pg_catalog.pg_has_role(current_user, v_role, 'USAGE') THEN
        EXECUTE pg_catalog.format('GRANT %I TO %I', v_role, current_user);
      END IF;
    END LOOP;
  END IF;
  -- A statement limit in the command itself is ignored by pg_cron's background workers; one on
  -- the role holds in both of its modes. The path keeps strangers' operators out of our SQL.
  IF NOT EXISTS (
    SELECT FROM pg_catalog.pg_db_role_setting s
    JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
    WHERE r.rolname = 'jobwarden_runner' AND s.setdatabase = 0
      AND s.setconfig @> ARRAY['search_path=pg_catalog, pg_temp', 'lock_timeout=5s', 'statement_timeout=30min']
  ) THEN
    ALTER ROLE jobwarden_runner SET search_path = pg_catalog, pg_temp;
    ALTER ROLE jobwarden_runner SET lock_timeout = '5s';
    ALTER ROLE jobwarden_runner SET statement_timeout = '30min';
  END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS jobwarden AUTHORIZATION jobwarden_owner;

-- Limits per action; the row '*' is for every action without one of its own.
CREATE TABLE IF NOT EXISTS jobwarden.policy (
  action    text PRIMARY KEY,
  timeout   interval CHECK (timeout > interval '0'),      -- NULL: never rescued
  retention interval CHECK (retention > interval '0')     -- NULL: kept for ever
);

-- One row per sweep or cleanup. A row that stays 'running' was cut off; the next run says so.
CREATE TABLE IF NOT EXISTS jobwarden.run (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('sweep', 'cleanup')),
  started_at  timestamptz NOT NULL,
  ended_at    timestamptz,
  outcome     text NOT NULL DEFAULT 'running'
              CHECK (outcome IN ('running', 'ok', 'partial', 'skipped', 'interrupted')),
  changed     bigint NOT NULL DEFAULT 0,    -- jobs failed, or deleted
  skipped     bigint NOT NULL DEFAULT 0,    -- due, but locked by somebody at that moment
  poisoned    bigint NOT NULL DEFAULT 0,    -- due, but the write itself was refused
  sqlstate    text,                         -- of the first refused write
  message     text
);
CREATE INDEX IF NOT EXISTS run_kind_idx ON jobwarden.run (kind, id DESC);
CREATE INDEX IF NOT EXISTS run_ended_at_idx ON jobwarden.run (ended_at);
CREATE INDEX IF NOT EXISTS run_open_idx ON jobwarden.run (kind) WHERE outcome = 'running';

-- One row per failed job, whoever failed it. `code` is what alerts are routed by.
CREATE TABLE IF NOT EXISTS jobwarden.event (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL,
  job_id  text NOT NULL,
  action  text,
  code    text NOT NULL,
  error   jsonb
);
CREATE INDEX IF NOT EXISTS event_at_idx ON jobwarden.event (at);

-- When this database itself was away. Jobs that were running then get that much longer.
CREATE TABLE IF NOT EXISTS jobwarden.outage (
  ended_at    timestamptz PRIMARY KEY,      -- the start of the server that found it
  started_at  timestamptz NOT NULL          -- the last sign of life before
);

-- The ledger: what we declared, and the job of pg_cron that carries it (NULL: none does).
CREATE TABLE IF NOT EXISTS jobwarden.schedule (
  name      text PRIMARY KEY,
  schedule  text NOT NULL,
  command   text NOT NULL,
  every     interval NOT NULL,              -- the longest time between two runs
  jobid     bigint UNIQUE
);

-- What was applied, so that a plan can tell "ours is newer" from "somebody changed it".
CREATE TABLE IF NOT EXISTS jobwarden.source (
  name     text PRIMARY KEY,
  body     text NOT NULL,
  release  int NOT NULL
);
CREATE TABLE IF NOT EXISTS jobwarden.object (
  kind         text NOT NULL,
  name         text NOT NULL,
  fingerprint  text NOT NULL,
  PRIMARY KEY (kind, name)
);

-- The only clock. Tests replace it; no setting moves it.
CREATE OR REPLACE FUNCTION jobwarden.now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT pg_catalog.clock_timestamp() $$;

DO $$
DECLARE
  v_name text;
BEGIN
  FOREACH v_name IN ARRAY ARRAY['policy', 'run', 'event', 'outage', 'schedule', 'source', 'object'] LOOP
    EXECUTE pg_catalog.format('ALTER TABLE jobwarden.%I OWNER TO jobwarden_owner', v_name);
  END LOOP;
END
$$;
ALTER FUNCTION jobwarden.now() OWNER TO jobwarden_owner;
