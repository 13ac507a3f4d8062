-- The cleanup: finished jobs go when their retention is over, and so do our own logs.
--
-- What:  expired() says which jobs go, cleanup() deletes them in batches, prune() shortens our
--        run log, the events, and pg_cron's history of our schedules.
-- Why:   one big DELETE a day holds locks and memory for a whole day's jobs; batches do not.
-- Who:   the schedule jobsDailyCleanup calls `CALL jobwarden.cleanup()` as jobwarden_runner.

-- The finished jobs whose retention was over at p_now, oldest first, after the given one (NULL:
-- from the start). Read-only: `jobwarden cleanup --dry-run` shows it.
CREATE OR REPLACE FUNCTION jobwarden.expired(
  p_now timestamptz, p_limit int,
  p_after_completed timestamptz DEFAULT NULL, p_after_id uuid DEFAULT NULL)
RETURNS TABLE (id uuid, action text, completed_at timestamptz, retention interval)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
  SELECT old.id, old.action, old.completed_at, old.retention
  FROM jobwarden.finished_actions() AS finished (action)
  CROSS JOIN LATERAL jobwarden.policy_of(finished.action) AS limits
  CROSS JOIN LATERAL (
    SELECT j.id, j.action, j.completed_at, limits.retention
    FROM jobwarden.job j
    WHERE j.is_terminal AND j.action = finished.action
      AND j.completed_at < p_now - limits.retention
      AND (j.completed_at, j.id) >
          (coalesce(p_after_completed, '-infinity'), coalesce(p_after_id, '00000000-0000-0000-0000-000000000000'))
    ORDER BY j.completed_at, j.id
    LIMIT p_limit
  ) AS old
  ORDER BY old.completed_at, old.id
  LIMIT p_limit
$$;

-- Deletes the next p_limit expired jobs after the cursor in one statement; the state is checked
-- again on the locked row, and what somebody holds stays for the next cleanup. It is asked in a way
-- that fits no partial index: each row is to be found by its key.
CREATE OR REPLACE FUNCTION jobwarden.discard(
  p_now timestamptz, p_limit int,
  INOUT p_after_completed timestamptz, INOUT p_after_id uuid, OUT due bigint, OUT changed bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
  WITH due AS MATERIALIZED (
    SELECT e.* FROM jobwarden.expired(p_now, p_limit, p_after_completed, p_after_id) AS e
  ), locked AS MATERIALIZED (
    SELECT j.id FROM due JOIN jobwarden.job j ON j.id = due.id
    WHERE coalesce(j.is_terminal, false) AND j.completed_at = due.completed_at
    FOR UPDATE OF j SKIP LOCKED
  ), changed AS (
    DELETE FROM jobwarden.job j USING locked
    WHERE j.id = locked.id AND coalesce(j.is_terminal, false)
    RETURNING 1
  ), last AS (
    SELECT due.completed_at, due.id FROM due ORDER BY due.completed_at DESC, due.id DESC LIMIT 1
  )
  SELECT coalesce((SELECT last.completed_at FROM last), p_after_completed),
         coalesce((SELECT last.id FROM last), p_after_id),
         (SELECT pg_catalog.count(*) FROM due),
         (SELECT pg_catalog.count(*) FROM changed)
$$;

-- One batch. When a statement is refused (a child row that restricts it), half as many jobs are
-- tried, down to the one at fault, which is passed over and reported. Children whose check would
-- wait for the commit are asked here, too.
CREATE OR REPLACE FUNCTION jobwarden.cleanup_batch(
  p_now timestamptz, p_limit int,
  INOUT p_after_completed timestamptz, INOUT p_after_id uuid,
  OUT due bigint, OUT changed bigint, OUT poisoned bigint, OUT state text, OUT message text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := least(p_now, jobwarden.now());
  v_size int := p_limit;
  v_part record;
BEGIN
  due := 0;
  changed := 0;
  poisoned := 0;
  SET CONSTRAINTS ALL IMMEDIATE;
  WHILE due < p_limit LOOP
    v_size := least(v_size, p_limit - due);
    BEGIN
      SELECT d.* INTO STRICT v_part FROM jobwarden.discard(v_now, v_size, p_after_completed, p_after_id) AS d;
      p_after_completed := v_part.p_after_completed;
      p_after_id := v_part.p_after_id;
      due := due + v_part.due;
      changed := changed + v_part.changed;
      EXIT WHEN v_part.due < v_size;
      v_size := v_size * 2;
    EXCEPTION WHEN OTHERS THEN
      IF v_size > 1 THEN
        v_size := v_size / 2;
        CONTINUE;
      END IF;
      SELECT e.completed_at, e.id INTO p_after_completed, p_after_id
      FROM jobwarden.expired(v_now, 1, p_after_completed, p_after_id) AS e;
      EXIT WHEN NOT FOUND;
      due := due + 1;
      poisoned := poisoned + 1;
      state := coalesce(state, SQLSTATE);
      message := coalesce(message, 'job ' || p_after_id || ': ' || SQLERRM);
    END;
  END LOOP;
END
$$;

-- Our own logs. pg_cron never shortens its history, and the purge its manual shows misses every
-- run without an end; so all rows up to the newest old one go, but for those that may still run.
-- The cron schema may be missing: what names it is run as text.
CREATE OR REPLACE FUNCTION jobwarden.prune_log(p_now timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  DELETE FROM jobwarden.run WHERE run.started_at < least(p_now, jobwarden.now()) - interval '30 days';
  DELETE FROM jobwarden.event WHERE event.at < least(p_now, jobwarden.now()) - interval '90 days';
  DELETE FROM jobwarden.outage WHERE outage.ended_at < least(p_now, jobwarden.now()) - interval '90 days';
$$;

CREATE OR REPLACE FUNCTION jobwarden.prune(p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
  v_gone bigint := 0;
BEGIN
  PERFORM jobwarden.prune_log(p_now);
  IF pg_catalog.to_regclass('cron.job_run_details') IS NULL
     OR NOT pg_catalog.has_schema_privilege('cron', 'USAGE') THEN
    RETURN 0;
  END IF;
  EXECUTE $prune$
    WITH ours AS (
      SELECT d.runid, d.status, d.end_time FROM cron.job_run_details d
      WHERE d.username = 'jobwarden_runner'
    )
    DELETE FROM cron.job_run_details d USING ours
    WHERE d.runid = ours.runid
      AND (ours.runid <= (SELECT pg_catalog.max(o.runid) FROM ours o
                          WHERE o.end_time < $1 - interval '7 days')
           AND ours.status NOT IN ('starting', 'running', 'connecting', 'sending')
        OR ours.runid <= (SELECT pg_catalog.max(o.runid) FROM ours o
                          WHERE o.end_time < $1 - interval '14 days'))
  $prune$ USING p_now;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END
$$;

-- Stops at its time budget (NULL: none) and goes on the next day: it must never hold up the sweep.
-- Logs that cannot be shortened are reported, and cost no job its deletion.
CREATE OR REPLACE PROCEDURE jobwarden.cleanup(p_batch int DEFAULT 2000, p_budget interval DEFAULT '10 minutes')
LANGUAGE plpgsql
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
  v_stop timestamptz := pg_catalog.clock_timestamp() + p_budget;
  v_run bigint;
  v_batch record;
  v_completed timestamptz;
  v_id uuid;
  v_due bigint := 0;
  v_changed bigint := 0;
  v_poisoned bigint := 0;
  v_state text;
  v_message text;
  v_outcome text := 'ok';
BEGIN
  IF COALESCE(p_batch < 1, true) THEN
    RAISE EXCEPTION 'a batch of % jobs: at least 1 is allowed', COALESCE(p_batch::text, 'NULL')
      USING ERRCODE = '22023', HINT = 'Try: CALL jobwarden.cleanup()';
  END IF;
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('jobwarden.cleanup')) THEN
    v_run := jobwarden.skip_run('cleanup', v_now);
    RETURN;
  END IF;
  v_run := jobwarden.begin_run('cleanup', v_now);
  LOOP
    COMMIT;
    IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('jobwarden.cleanup')) THEN
      v_outcome := 'partial';
      EXIT;
    END IF;
    SELECT b.* INTO v_batch FROM jobwarden.cleanup_batch(v_now, p_batch, v_completed, v_id) AS b;
    v_completed := v_batch.p_after_completed;
    v_id := v_batch.p_after_id;
    v_due := v_due + v_batch.due;
    v_changed := v_changed + v_batch.changed;
    v_poisoned := v_poisoned + v_batch.poisoned;
    v_state := COALESCE(v_state, v_batch.state);
    v_message := COALESCE(v_message, v_batch.message);
    EXIT WHEN v_batch.due < p_batch;
    PERFORM jobwarden.log_run(
      v_run, 'running', v_changed, v_due - v_changed - v_poisoned, v_poisoned, v_state, v_message);
    IF pg_catalog.clock_timestamp() > v_stop THEN
      v_outcome := 'partial';
      EXIT;
    END IF;
  END LOOP;
  BEGIN
    PERFORM jobwarden.prune(v_now);
  EXCEPTION WHEN OTHERS THEN
    v_outcome := 'partial';
    v_state := COALESCE(v_state, SQLSTATE);
    v_message := COALESCE(v_message, 'the logs were not shortened: ' || SQLERRM);
  END;
  PERFORM jobwarden.log_run(
    v_run, v_outcome, v_changed, v_due - v_changed - v_poisoned, v_poisoned, v_state, v_message);
END
$$;

ALTER FUNCTION jobwarden.expired(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.discard(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.cleanup_batch(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.prune_log(timestamptz) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.prune(timestamptz) OWNER TO jobwarden_owner;
ALTER PROCEDURE jobwarden.cleanup(int, interval) OWNER TO jobwarden_owner;
