-- The sweep: a job that runs too long becomes failed, with the reason on the row.
--
-- What:  stuck() says which jobs are due, sweep() fails them in batches.
-- Why:   a worker that died writes nothing; the row would stay `running` for ever.
-- Who:   the schedule jobsStuckWatchdog calls `CALL jobwarden.sweep()` as jobwarden_runner.
--
-- sweep() commits after each batch, which only a bare CALL of an invoker procedure without a SET
-- clause may do; all names in it are therefore written out in full. The rights are in the batch
-- functions, so the runner needs none on the table. What the runner may call takes no time of its
-- caller that lies ahead of the clock: nobody can make a job old by naming a late hour.
--
-- The functions say ROWS and jit = off since they are planned before their arguments are known:
-- the planner would else take the batch for a large one, read the whole table and compile for it.

-- The jobs that are due at p_now, oldest first, after the given one (NULL: from the start).
-- A job is due when it ran longer than its action's limit, plus what the database itself was away
-- while it ran (at most the limit once more). Read-only: `jobwarden sweep --dry-run` shows it.
CREATE OR REPLACE FUNCTION jobwarden.stuck(
  p_now timestamptz, p_limit int,
  p_after_started timestamptz DEFAULT NULL, p_after_id uuid DEFAULT NULL)
RETURNS TABLE (id uuid, action text, started_at timestamptz, timeout interval)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
  WITH outage AS MATERIALIZED (
    SELECT o.ended_at, o.ended_at - o.started_at AS length
    FROM jobwarden.outage o ORDER BY o.ended_at DESC LIMIT 1
  )
  SELECT due.id, due.action, due.started_at, due.timeout
  FROM jobwarden.running_actions() AS running (action)
  CROSS JOIN LATERAL jobwarden.policy_of(running.action) AS limits
  LEFT JOIN outage ON true
  CROSS JOIN LATERAL (
    SELECT j.id, j.action, j.started_at, limits.timeout
    FROM jobwarden.job j
    WHERE j.is_running AND j.action = running.action
      AND j.started_at < p_now - limits.timeout
      AND (j.started_at, j.id) >
          (coalesce(p_after_started, '-infinity'), coalesce(p_after_id, '00000000-0000-0000-0000-000000000000'))
      AND (outage.ended_at IS NULL OR j.started_at >= outage.ended_at
           OR j.started_at < p_now - limits.timeout - least(outage.length, limits.timeout))
    ORDER BY j.started_at, j.id
    LIMIT p_limit
  ) AS due
  ORDER BY due.started_at, due.id
  LIMIT p_limit
$$;

-- What is written on a rescued job. The first two keys are the whole contract with clients; the
-- rest is evidence. Without a SET clause, so that it becomes part of the statement that calls it.
CREATE OR REPLACE FUNCTION jobwarden.timeout_error(
  p_action text, p_worker text, p_started_at timestamptz, p_limit text, p_now timestamptz)
RETURNS jsonb
LANGUAGE sql STABLE
AS $$
  SELECT pg_catalog.jsonb_build_object(
    'code', 'watchdog_timeout',
    'message', 'worker timed out (running >' || p_limit || ')',
    'action', p_action,
    'worker', p_worker,
    'started_at', p_started_at,
    'limit', p_limit,
    'swept_at', p_now)
$$;

-- Fails the next p_limit due jobs after the cursor in one statement. A job whose row is locked is
-- left for the next sweep; one that changed since it was picked is left alone. The state is asked in
-- a way that fits no partial index: each row is to be found by its key. Times are written in UTC.
CREATE OR REPLACE FUNCTION jobwarden.rescue(
  p_now timestamptz, p_limit int,
  INOUT p_after_started timestamptz, INOUT p_after_id uuid, OUT due bigint, OUT changed bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off SET timezone = 'UTC'
AS $$
  WITH due AS MATERIALIZED (
    SELECT s.* FROM jobwarden.stuck(p_now, p_limit, p_after_started, p_after_id) AS s
  ), spelled AS MATERIALIZED (
    SELECT d.timeout, jobwarden.human(d.timeout) AS text FROM (SELECT DISTINCT due.timeout FROM due) AS d
  ), locked AS MATERIALIZED (
    SELECT j.id, spelled.text AS timeout
    FROM due
    JOIN spelled ON spelled.timeout = due.timeout
    JOIN jobwarden.job j ON j.id = due.id
    WHERE coalesce(j.is_running, false) AND j.started_at = due.started_at
    ORDER BY due.started_at, due.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
  ), changed AS (
    UPDATE jobwarden.job j
    SET status = jobwarden.failed_state(),
        completed_at = p_now,
        error = jobwarden.timeout_error(j.action, j.worker, j.started_at, locked.timeout, p_now)
    FROM locked
    WHERE j.id = locked.id AND coalesce(j.is_running, false)
    RETURNING 1
  ), last AS (
    SELECT due.started_at, due.id FROM due ORDER BY due.started_at DESC, due.id DESC LIMIT 1
  )
  SELECT coalesce((SELECT last.started_at FROM last), p_after_started),
         coalesce((SELECT last.id FROM last), p_after_id),
         (SELECT pg_catalog.count(*) FROM due),
         (SELECT pg_catalog.count(*) FROM changed)
$$;

-- One batch. When a statement is refused, half as many jobs are tried, down to the one at fault,
-- which is passed over; so one row that cannot be written (a check, a trigger of yours) never keeps
-- the others from their rescue. Checks that would wait for the commit are made to speak here, too.
CREATE OR REPLACE FUNCTION jobwarden.sweep_batch(
  p_now timestamptz, p_limit int,
  INOUT p_after_started timestamptz, INOUT p_after_id uuid,
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
      SELECT r.* INTO STRICT v_part FROM jobwarden.rescue(v_now, v_size, p_after_started, p_after_id) AS r;
      p_after_started := v_part.p_after_started;
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
      SELECT s.started_at, s.id INTO p_after_started, p_after_id
      FROM jobwarden.stuck(v_now, 1, p_after_started, p_after_id) AS s;
      EXIT WHEN NOT FOUND;
      due := due + 1;
      poisoned := poisoned + 1;
      state := coalesce(state, SQLSTATE);
      message := coalesce(message, 'job ' || p_after_id || ': ' || SQLERRM);
    END;
  END LOOP;
END
$$;

-- A running job without a start has no age. The sweep that first sees it starts its clock.
CREATE OR REPLACE FUNCTION jobwarden.start_clocks(OUT poisoned bigint, OUT state text, OUT message text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_id uuid;
BEGIN
  poisoned := 0;
  SET CONSTRAINTS ALL IMMEDIATE;
  FOR v_id IN
    SELECT s.id FROM jobwarden.running_actions() AS running (action)
    CROSS JOIN LATERAL (
      SELECT j.id FROM jobwarden.job j
      WHERE j.is_running AND j.action = running.action AND j.started_at IS NULL
      LIMIT 1000
      FOR NO KEY UPDATE OF j SKIP LOCKED
    ) AS s
  LOOP
    BEGIN
      UPDATE jobwarden.job j SET started_at = jobwarden.now()
      WHERE j.id = v_id AND j.is_running AND j.started_at IS NULL;
    EXCEPTION WHEN OTHERS THEN
      poisoned := poisoned + 1;
      state := coalesce(state, SQLSTATE);
      message := coalesce(message, 'job ' || v_id || ': ' || SQLERRM);
    END;
  END LOOP;
END
$$;

-- Opens a row in the run log, marks what an earlier run left open, and notes an outage of the
-- database: from the last sign of life in the log to the start of the server.
CREATE OR REPLACE FUNCTION jobwarden.begin_run(p_kind text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_server_start timestamptz := pg_postmaster_start_time();
  v_id bigint;
BEGIN
  UPDATE jobwarden.run SET outcome = 'interrupted', message = 'cut off: the server or the run was stopped'
  WHERE run.kind = p_kind AND run.outcome = 'running';
  INSERT INTO jobwarden.outage (ended_at, started_at)
  SELECT v_server_start, last.seen
  FROM (SELECT greatest(r.started_at, r.ended_at) AS seen FROM jobwarden.run r
        ORDER BY r.id DESC LIMIT 1) AS last
  WHERE last.seen < v_server_start
  ON CONFLICT (ended_at) DO NOTHING;
  INSERT INTO jobwarden.run (kind, started_at) VALUES (p_kind, p_now) RETURNING run.id INTO v_id;
  RETURN v_id;
END
$$;

-- Writes down what a run has done: so far (outcome 'running'), or in all.
CREATE OR REPLACE FUNCTION jobwarden.log_run(
  p_id bigint, p_outcome text, p_changed bigint, p_skipped bigint, p_poisoned bigint,
  p_state text, p_message text)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  UPDATE jobwarden.run
  SET ended_at = greatest(jobwarden.now(), started_at), outcome = p_outcome, changed = p_changed,
      skipped = p_skipped, poisoned = p_poisoned, sqlstate = p_state, message = p_message
  WHERE run.id = p_id
$$;

-- One run at a time. The lock is of the transaction and only tried: nothing waits, nothing leaks
-- after an error. It ends at each COMMIT, so it is taken anew for each batch. The first COMMIT
-- comes before the first batch: a run that is cut off, however early, is in the log.
CREATE OR REPLACE PROCEDURE jobwarden.sweep(p_batch int DEFAULT 500)
LANGUAGE plpgsql
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
  v_run bigint;
  v_batch record;
  v_started timestamptz;
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
      USING ERRCODE = '22023', HINT = 'Try: CALL jobwarden.sweep()';
  END IF;
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('jobwarden.sweep')) THEN
    v_run := jobwarden.skip_run('sweep', v_now);
    RETURN;
  END IF;
  v_run := jobwarden.begin_run('sweep', v_now);
  SELECT c.poisoned, c.state, c.message INTO v_poisoned, v_state, v_message
  FROM jobwarden.start_clocks() AS c;
  v_due := v_poisoned;
  LOOP
    COMMIT;
    IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('jobwarden.sweep')) THEN
      v_outcome := 'partial';
      EXIT;
    END IF;
    SELECT b.* INTO v_batch FROM jobwarden.sweep_batch(v_now, p_batch, v_started, v_id) AS b;
    v_started := v_batch.p_after_started;
    v_id := v_batch.p_after_id;
    v_due := v_due + v_batch.due;
    v_changed := v_changed + v_batch.changed;
    v_poisoned := v_poisoned + v_batch.poisoned;
    v_state := COALESCE(v_state, v_batch.state);
    v_message := COALESCE(v_message, v_batch.message);
    EXIT WHEN v_batch.due < p_batch;
    PERFORM jobwarden.log_run(
      v_run, 'running', v_changed, v_due - v_changed - v_poisoned, v_poisoned, v_state, v_message);
  END LOOP;
  PERFORM jobwarden.log_run(
    v_run, v_outcome, v_changed, v_due - v_changed - v_poisoned, v_poisoned, v_state, v_message);
END
$$;

-- A run that found another one at work says so and ends.
CREATE OR REPLACE FUNCTION jobwarden.skip_run(p_kind text, p_now timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO jobwarden.run (kind, started_at, ended_at, outcome, message)
  VALUES (p_kind, p_now, p_now, 'skipped', 'another run was at work')
  RETURNING run.id
$$;

ALTER FUNCTION jobwarden.stuck(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.timeout_error(text, text, timestamptz, text, timestamptz) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.rescue(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.sweep_batch(timestamptz, int, timestamptz, uuid) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.start_clocks() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.begin_run(text, timestamptz) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.log_run(bigint, text, bigint, bigint, bigint, text, text) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.skip_run(text, timestamptz) OWNER TO jobwarden_owner;
ALTER PROCEDURE jobwarden.sweep(int) OWNER TO jobwarden_owner;
