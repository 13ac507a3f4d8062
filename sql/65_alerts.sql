-- Alerts: which failures somebody must hear of, and whether they have.
--
-- What:  events become alerts, one for each burst of one code; an alert is claimed, sent, settled.
-- Why:   an event is committed with the failure it tells of, so it cannot be lost. What became of it
--        is kept here too, so a restart of the sender, or of this server, loses nothing.
-- Who:   `jobwarden alerts run`, as a member of jobwarden_alerts, who may call these and no more.
--
-- An alert is sent at least once. Who dies between sending and settling leaves it claimed; when the
-- claim runs out it is sent again under the same key, by which the receiver tells a second copy.

-- One message, or the decision to send none. Events point to it.
CREATE TABLE IF NOT EXISTS jobwarden.alert (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key       uuid NOT NULL UNIQUE DEFAULT pg_catalog.gen_random_uuid(),  -- the same at each attempt
  route     text NOT NULL,
  code      text NOT NULL,
  made_at   timestamptz NOT NULL,
  state     text NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'ignored')),
  attempts  int NOT NULL DEFAULT 0,
  next_at   timestamptz NOT NULL,      -- not sent before; of a claimed one: when the claim runs out
  ended_at  timestamptz,
  reason    text                       -- why the last attempt failed, or why nothing is sent
);
CREATE INDEX IF NOT EXISTS alert_waiting_idx ON jobwarden.alert (next_at) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS alert_burst_idx ON jobwarden.alert (route, code, made_at) WHERE state <> 'ignored';
CREATE INDEX IF NOT EXISTS alert_made_at_idx ON jobwarden.alert (made_at);

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = 'jobwarden.event'::pg_catalog.regclass AND a.attname = 'alert') THEN
    ALTER TABLE jobwarden.event ADD COLUMN alert bigint;
  END IF;
  ALTER TABLE jobwarden.alert OWNER TO jobwarden_owner;
END
$$;
CREATE INDEX IF NOT EXISTS event_new_idx ON jobwarden.event (id) WHERE alert IS NULL;
CREATE INDEX IF NOT EXISTS event_alert_idx ON jobwarden.event (alert) WHERE alert IS NOT NULL;

-- Called when a sender starts, and now and then. The first one ever is not to wake anybody for
-- failures of last month: what is older than an hour by then is put aside.
CREATE OR REPLACE FUNCTION jobwarden.begin_alerts() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
  v_id bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM jobwarden.alert) THEN
    INSERT INTO jobwarden.alert (route, code, made_at, state, next_at, ended_at, reason)
    VALUES ('ignore', '*', v_now, 'ignored', v_now, v_now, 'failed before alerts first ran')
    RETURNING alert.id INTO v_id;
    UPDATE jobwarden.event SET alert = v_id WHERE event.alert IS NULL AND event.at < v_now - interval '1 hour';
  END IF;
  DELETE FROM jobwarden.alert a
  WHERE a.made_at < v_now - interval '91 days' AND a.state <> 'waiting'
    AND a.id < (SELECT max(l.id) FROM jobwarden.alert l);
END
$$;

-- Events nobody has looked at yet, locked for the transaction that files them.
CREATE OR REPLACE FUNCTION jobwarden.new_events(p_limit int)
RETURNS TABLE (id bigint, action text, code text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT e.id, e.action, left(e.code, 200) FROM jobwarden.event e
  WHERE e.alert IS NULL ORDER BY e.id LIMIT p_limit FOR UPDATE SKIP LOCKED
$$;

-- Files events under a route. They join the alert of that code that waits for its first attempt;
-- else they make one, which waits a moment for more of the burst, and for a minute to be over since
-- the one before. An alert that was tried once never changes.
CREATE OR REPLACE FUNCTION jobwarden.file_events(p_route text, p_code text, p_events bigint[])
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
  v_id bigint;
BEGIN
  IF p_route <> 'ignore' THEN
    SELECT a.id INTO v_id FROM jobwarden.alert a
    WHERE a.state = 'waiting' AND a.attempts = 0 AND a.route = p_route AND a.code = p_code
    ORDER BY a.id LIMIT 1 FOR UPDATE SKIP LOCKED;
  ELSE  -- one row an hour is enough to say that nobody was told
    SELECT a.id INTO v_id FROM jobwarden.alert a
    WHERE a.made_at > v_now - interval '1 hour' AND a.state = 'ignored' AND a.code = p_code
    ORDER BY a.made_at DESC LIMIT 1;
  END IF;
  IF v_id IS NULL THEN
    INSERT INTO jobwarden.alert (route, code, made_at, state, next_at, ended_at)
    SELECT p_route, p_code, v_now,
           CASE p_route WHEN 'ignore' THEN 'ignored' ELSE 'waiting' END,
           greatest(v_now + interval '2 seconds', max(a.made_at) + interval '1 minute'),
           CASE p_route WHEN 'ignore' THEN v_now END
    FROM jobwarden.alert a WHERE a.route = p_route AND a.code = p_code AND a.state <> 'ignored'
    RETURNING alert.id INTO v_id;
  END IF;
  UPDATE jobwarden.event SET alert = v_id WHERE event.id = ANY (p_events) AND event.alert IS NULL;
END
$$;

-- The next alert that is due, and what to say of it. Nobody else gets it until the claim runs out.
CREATE OR REPLACE FUNCTION jobwarden.claim_alert(p_claim interval)
RETURNS TABLE (key uuid, route text, code text, attempt int, made_at timestamptz,
               claimed_at timestamptz, failures bigint, actions jsonb, jobs text[], first_at timestamptz, last_at timestamptz, sample text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
  v_alert jobwarden.alert;
BEGIN
  UPDATE jobwarden.alert a SET attempts = a.attempts + 1, next_at = v_now + p_claim
  WHERE a.id = (SELECT w.id FROM jobwarden.alert w WHERE w.state = 'waiting' AND w.next_at <= v_now
                ORDER BY w.next_at, w.id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING a.* INTO v_alert;
  IF v_alert.id IS NULL THEN
    RETURN;
  END IF;
  -- A statement of its own: it sees what was filed while the first one waited.
  RETURN QUERY
  WITH failed AS MATERIALIZED (SELECT e.* FROM jobwarden.event e WHERE e.alert = v_alert.id)
  SELECT v_alert.key, v_alert.route, v_alert.code, v_alert.attempts, v_alert.made_at, v_now,
         (SELECT count(*) FROM failed),
         (SELECT coalesce(jsonb_object_agg(n.action, n.jobs), '{}') FROM (
            SELECT coalesce(failed.action, '') AS action, count(*) AS jobs FROM failed GROUP BY 1) AS n),
         ARRAY(SELECT failed.job_id FROM failed ORDER BY failed.id LIMIT 20),
         (SELECT min(failed.at) FROM failed), (SELECT max(failed.at) FROM failed),
         (SELECT left(failed.error ->> 'message', 500) FROM failed ORDER BY failed.id LIMIT 1);
END
$$;

-- Writes down how an attempt ended. False where another attempt has begun meanwhile.
CREATE OR REPLACE FUNCTION jobwarden.settle_alert(
  p_key uuid, p_attempt int, p_state text, p_reason text, p_again interval)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := jobwarden.now();
BEGIN
  UPDATE jobwarden.alert a
  SET state = p_state, reason = p_reason,
      next_at = v_now + coalesce(p_again, '0'),
      ended_at = CASE WHEN p_state <> 'waiting' THEN v_now END
  WHERE a.key = p_key AND a.attempts = p_attempt AND a.state = 'waiting';
  RETURN FOUND;
END
$$;

-- Seconds until the next alert is due; NULL when none waits.
CREATE OR REPLACE FUNCTION jobwarden.next_alert() RETURNS double precision
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT extract(epoch FROM min(a.next_at) - jobwarden.now())::float8
  FROM jobwarden.alert a WHERE a.state = 'waiting'
$$;

ALTER FUNCTION jobwarden.begin_alerts() OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.new_events(int) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.file_events(text, text, bigint[]) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.claim_alert(interval) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.settle_alert(uuid, int, text, text, interval) OWNER TO jobwarden_owner;
ALTER FUNCTION jobwarden.next_alert() OWNER TO jobwarden_owner;
