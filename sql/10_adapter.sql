-- The adapter: your table under our names. Only this file and 11_guard.sql have holes in them.
--
-- What:  the jobs table (created when missing), the view jobwarden.job, the state functions and
--        the triggers. Every name of yours is written here and nowhere else.
-- Why:   all other SQL is constant text. The view keeps `is_running` and `is_terminal` as
--        expressions over literal states, so that the partial indexes match through it.
-- Who:   the sweep and the cleanup read and write jobwarden.job; your workers use the table.

-- A table that is there already is left as it is: its owner and its own indexes are not our business.
-- A superuser who applies gives a new one to the database's owner, whose migrations must go on
-- working; anybody else keeps what they made.
DO $$
DECLARE
  v_owner text := (SELECT d.datdba::regrole::text FROM pg_catalog.pg_database d
                   WHERE d.datname = pg_catalog.current_database());
BEGIN
  IF pg_catalog.to_regclass({table_literal}) IS NOT NULL THEN
    RETURN;
  END IF;
  CREATE TABLE {table} (
    {id}            uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    {action}        text NOT NULL,
    {status}        text NOT NULL DEFAULT {queued}
                    CHECK ({status} IN ({queued}, {running}, {done}, {failed})),
    payload         jsonb NOT NULL DEFAULT '{{}}',
    result          jsonb,
    {error}         jsonb,
    worker          text,                     -- who runs it, if the worker says so
    created_at      timestamptz NOT NULL DEFAULT pg_catalog.now(),
    {started_at}    timestamptz,
    {completed_at}  timestamptz
  );
  CREATE INDEX IF NOT EXISTS {queued_index} ON {table} (created_at) WHERE {status} = {queued};
  IF (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
    EXECUTE pg_catalog.format('ALTER TABLE %s OWNER TO %s', {table_literal}::regclass, v_owner);
  END IF;
END
$$;

GRANT USAGE ON SCHEMA {schema} TO jobwarden_worker;
GRANT SELECT, INSERT, UPDATE ON {table} TO jobwarden_worker;

CREATE OR REPLACE VIEW jobwarden.job AS
SELECT {id} AS id,
       {action} AS action,
       {status} AS status,
       {started_at} AS started_at,
       {completed_at} AS completed_at,
       {error} AS error,
       worker AS worker,
       ({status} = {running}) AS is_running,
       ({status} IN ({done}, {failed})) AS is_terminal
FROM {table};

-- The view acts as the table's owner: row security and later grants cannot blind the sweep.
DO $$
DECLARE
  v_owner text := (SELECT c.relowner::regrole::text FROM pg_catalog.pg_class c
                   WHERE c.oid = {table_literal}::regclass);
BEGIN
  IF pg_catalog.has_schema_privilege(v_owner::regrole, 'jobwarden', 'CREATE') THEN
    EXECUTE pg_catalog.format('ALTER VIEW jobwarden.job OWNER TO %s', v_owner);
  ELSE
    -- A new owner must be allowed to create here, but for the moment of the change only.
    EXECUTE pg_catalog.format('GRANT CREATE ON SCHEMA jobwarden TO %s', v_owner);
    EXECUTE pg_catalog.format('ALTER VIEW jobwarden.job OWNER TO %s', v_owner);
    EXECUTE pg_catalog.format('REVOKE CREATE ON SCHEMA jobwarden FROM %s', v_owner);
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION jobwarden.failed_state() RETURNS text
LANGUAGE sql IMMUTABLE
AS $$ SELECT {failed}::text $$;

-- Stamps the times by the database's clock, whatever clock the worker has: a claim starts the
-- limit anew, an end is when it happened here.
CREATE OR REPLACE FUNCTION jobwarden.stamp() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NEW.{status} = {running} THEN
    NEW.{started_at} := jobwarden.now();
    NEW.{completed_at} := NULL;
  ELSE
    NEW.{completed_at} := jobwarden.now();
  END IF;
  RETURN NEW;
END
$$;

-- A finished job is final: the write of a worker that comes too late is refused, and told so.
CREATE OR REPLACE FUNCTION jobwarden.guard() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION 'job % is already %', OLD.{id},
    OLD.{status} || coalesce(' (' || (OLD.{error} ->> 'code') || ')', '')
    USING ERRCODE = 'JW001',
          DETAIL = 'A finished job is final: its state, error and times do not change.',
          HINT = 'Drop this result, or queue a new job.';
END
$$;

-- One event per job that fails, in the transaction that fails it.
CREATE OR REPLACE FUNCTION jobwarden.record_failure() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_code text := coalesce(NEW.{error} ->> 'code', 'unknown');
  v_id bigint;
BEGIN
  INSERT INTO jobwarden.event (at, job_id, action, code, error)
  VALUES (jobwarden.now(), NEW.{id}::text, NEW.{action}, v_code, NEW.{error})
  RETURNING event.id INTO v_id;
  PERFORM pg_notify('jobwarden_event', jsonb_build_object('id', v_id, 'code', left(v_code, 200))::text);
  RETURN NULL;
END
$$;

ALTER FUNCTION jobwarden.failed_state() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.stamp() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.guard() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.record_failure() OWNER TO jobwarden_owner;

-- Ours on another table are left from an environment that named that one.
DO $$
DECLARE
  v_trigger record;
BEGIN
  FOR v_trigger IN
    SELECT t.tgname, t.tgrelid::regclass AS relation FROM pg_catalog.pg_trigger t
    WHERE t.tgfoid IN ('jobwarden.stamp'::regproc, 'jobwarden.guard'::regproc,
                       'jobwarden.record_failure'::regproc)
      AND (t.tgrelid <> {table_literal}::regclass OR t.tgname = 'jobwarden_guard')
  LOOP
    EXECUTE pg_catalog.format('DROP TRIGGER %I ON %s', v_trigger.tgname, v_trigger.relation);
  END LOOP;
END
$$;

DROP TRIGGER IF EXISTS jobwarden_stamp_insert ON {table};
CREATE TRIGGER jobwarden_stamp_insert BEFORE INSERT ON {table} FOR EACH ROW
  WHEN ((NEW.{status} = {running} AND NEW.{started_at} IS NULL)
        OR (NEW.{status} IN ({done}, {failed}) AND NEW.{completed_at} IS NULL))
  EXECUTE FUNCTION jobwarden.stamp();

DROP TRIGGER IF EXISTS jobwarden_stamp_update ON {table};
CREATE TRIGGER jobwarden_stamp_update BEFORE UPDATE OF {status} ON {table} FOR EACH ROW
  WHEN (NEW.{status} IS DISTINCT FROM OLD.{status}
        AND NEW.{status} IN ({running}, {done}, {failed}))
  EXECUTE FUNCTION jobwarden.stamp();

DROP TRIGGER IF EXISTS jobwarden_event ON {table};
CREATE TRIGGER jobwarden_event AFTER UPDATE OF {status} ON {table} FOR EACH ROW
  WHEN (NEW.{status} = {failed} AND OLD.{status} IS DISTINCT FROM NEW.{status})
  EXECUTE FUNCTION jobwarden.record_failure();
