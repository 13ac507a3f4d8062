-- What is there: one read-only round trip that returns one JSON document.
--
-- What:  server, role, pg_cron, our schema, our schedules, the jobs table. Changes nothing, works
--        on an empty database, on a standby, and for a role with few rights: what may not be seen
--        is null in the document, which means "unknown", never "not there".
-- Why:   plan, apply and boot decide from this document alone; psycopg and psql both carry it.
-- Who:   infra/observed.py reads it. Not applied; a block that is run as it stands.
--
-- A DO block returns nothing, so the document travels in a setting of this transaction.
BEGIN READ ONLY;
DO $observe$
DECLARE
  v_doc jsonb;
  v_part jsonb;
  -- By the catalogs: to_regclass raises an error for a role without rights on the schema.
  v_table oid := (SELECT c.oid FROM pg_catalog.pg_class c
                  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                  WHERE n.nspname = {schema_name} AND c.relname = {table_name});
  v_ours boolean := EXISTS (SELECT FROM pg_catalog.pg_namespace n
                            JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
                            WHERE n.nspname = 'jobwarden' AND r.rolname = 'jobwarden_owner');
BEGIN
  -- The text of the view is read under a lock on the jobs table: somebody's long ALTER ends the look.
  PERFORM pg_catalog.set_config('lock_timeout', '5s', true);
  -- Definitions are spelled by the path, so it must be the same for every role that looks.
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
  PERFORM pg_catalog.set_config('quote_all_identifiers', 'off', true);
  SELECT pg_catalog.jsonb_build_object('server', pg_catalog.jsonb_build_object(
    'version_num', pg_catalog.current_setting('server_version_num')::int,
    'in_recovery', pg_catalog.pg_is_in_recovery(),
    'database', pg_catalog.current_database(),
    'port', pg_catalog.current_setting('port')::int,
    'started_at', pg_catalog.pg_postmaster_start_time(),
    'now', pg_catalog.clock_timestamp(),
    'user', r.rolname,
    'superuser', r.rolsuper,
    'createrole', r.rolcreaterole,
    'creates_schemas', pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
    'sees_every_cron_job', r.rolsuper OR r.rolbypassrls OR EXISTS (
      SELECT FROM pg_catalog.pg_roles s
      WHERE s.rolname = 'rds_superuser' AND pg_catalog.pg_has_role(r.oid, s.oid, 'USAGE')),
    'rds', EXISTS (SELECT FROM pg_catalog.pg_roles s WHERE s.rolname = 'rds_superuser'),
    'rds_superuser', EXISTS (
      SELECT FROM pg_catalog.pg_roles s
      WHERE s.rolname = 'rds_superuser' AND pg_catalog.pg_has_role(r.oid, s.oid, 'USAGE')),
    'launcher', (SELECT pg_catalog.jsonb_agg(a.datname) FROM pg_catalog.pg_stat_activity a
                 WHERE a.application_name = 'pg_cron scheduler')
  )) INTO v_doc
  FROM pg_catalog.pg_roles r WHERE r.rolname = current_user;

  -- Settings a role may not read are not listed: a missing key is "unknown".
  SELECT pg_catalog.jsonb_object_agg(s.name, pg_catalog.jsonb_build_object(
           'value', s.setting, 'pending_restart', s.pending_restart)) INTO v_part
  FROM pg_catalog.pg_settings s
  WHERE s.name LIKE 'cron.%' OR s.name IN ('shared_preload_libraries', 'max_worker_processes');
  v_doc := v_doc || pg_catalog.jsonb_build_object('settings', COALESCE(v_part, '{{}}'));

  SELECT pg_catalog.to_jsonb(e) INTO v_part FROM (
    SELECT a.default_version, a.installed_version FROM pg_catalog.pg_available_extensions a
    WHERE a.name = 'pg_cron') AS e;
  v_doc := v_doc || pg_catalog.jsonb_build_object('pg_cron', v_part);

  SELECT pg_catalog.jsonb_object_agg(r.rolname, pg_catalog.jsonb_build_object(
           'login', r.rolcanlogin, 'superuser', r.rolsuper,
           'ours_to_set', pg_catalog.pg_has_role(current_user, r.oid, 'USAGE') AND CASE
             WHEN pg_catalog.current_setting('server_version_num')::int >= 160000
             THEN pg_catalog.pg_has_role(current_user, r.oid, 'SET') ELSE true END)) INTO v_part
  FROM pg_catalog.pg_roles r
  WHERE r.rolname IN ('jobwarden_owner', 'jobwarden_runner', 'jobwarden_worker', 'jobwarden_readonly', 'jobwarden_alerts');
  v_doc := v_doc || pg_catalog.jsonb_build_object('roles', COALESCE(v_part, '{{}}'));

  -- The jobs table, whosever it is.
  SELECT pg_catalog.jsonb_build_object(
    'kind', c.relkind, 'owner', pg_catalog.pg_get_userbyid(c.relowner),
    'owned', pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE'),
    'owner_superuser', (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.oid = c.relowner),
    'forced_row_security', c.relrowsecurity AND c.relforcerowsecurity,
    'columns', (SELECT pg_catalog.jsonb_object_agg(a.attname, pg_catalog.format_type(a.atttypid, NULL))
                FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    'indexes', (SELECT COALESCE(pg_catalog.jsonb_object_agg(i.relname, x.indisvalid), '{{}}')
                FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
                WHERE x.indrelid = c.oid),
    'triggers', (SELECT COALESCE(pg_catalog.jsonb_agg(t.tgname ORDER BY t.tgname), '[]')
                 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
    'unindexed_children', (
      SELECT COALESCE(pg_catalog.jsonb_agg(f.conrelid::regclass::text), '[]')
      FROM pg_catalog.pg_constraint f
      WHERE f.confrelid = c.oid AND f.contype = 'f' AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_index x
        WHERE x.indrelid = f.conrelid AND x.indkey[0] = f.conkey[1]))
  ) INTO v_part
  FROM pg_catalog.pg_class c WHERE c.oid = v_table;
  v_doc := v_doc || pg_catalog.jsonb_build_object('table', v_part, 'schema_exists',
    EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = {schema_name}),
    'creates_in_schema', EXISTS (
      SELECT FROM pg_catalog.pg_namespace n
      WHERE n.nspname = {schema_name} AND pg_catalog.has_schema_privilege(n.oid, 'CREATE')),
    -- Our indexes on a table that an earlier environment named: they hold the names we need.
    'strays', (SELECT COALESCE(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(n.nspname, i.relname)
                                                    ORDER BY n.nspname, i.relname), '[]')
               FROM pg_catalog.pg_index x
               JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
               JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
               WHERE i.relname IN ('jobwarden_running_idx', 'jobwarden_terminal_idx')
                 AND x.indrelid IS DISTINCT FROM v_table));

  -- pg_cron's own table. Row security shows a plain role its own jobs only.
  v_part := NULL;
  BEGIN
    IF pg_catalog.to_regclass('cron.job') IS NOT NULL AND pg_catalog.has_schema_privilege('cron', 'USAGE')
       AND pg_catalog.has_table_privilege('cron.job', 'SELECT') THEN
      EXECUTE 'SELECT COALESCE(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(j) ORDER BY j.jobid), ''[]'') FROM cron.job j'
        INTO v_part;
    END IF;
  EXCEPTION WHEN insufficient_privilege OR undefined_table OR invalid_schema_name THEN
    v_part := NULL;
  END;
  BEGIN
    IF v_ours AND (v_part IS NULL OR NOT (v_doc #>> '{{server,sees_every_cron_job}}')::boolean)
       AND pg_catalog.to_regprocedure('jobwarden.cron_jobs()') IS NOT NULL THEN
      -- NULL only where neither may be seen; no job at all is an empty array.
      EXECUTE 'SELECT (SELECT CASE WHEN $1 IS NULL AND jobs.ours IS NULL THEN NULL'
        ' ELSE COALESCE(pg_catalog.jsonb_agg(DISTINCT x), ''[]'') END FROM pg_catalog.jsonb_array_elements('
        'COALESCE($1 || jobs.ours, $1, jobs.ours)) AS x)'
        ' FROM (SELECT jobwarden.cron_jobs() AS ours) AS jobs' INTO v_part USING v_part;
    END IF;
  EXCEPTION WHEN insufficient_privilege OR undefined_function OR invalid_schema_name THEN
    NULL;
  END;
  v_doc := v_doc || pg_catalog.jsonb_build_object('cron_jobs', v_part, 'cron_orphans', (
    SELECT pg_catalog.jsonb_agg(DISTINCT j.username)
    FROM pg_catalog.jsonb_to_recordset(COALESCE(v_part, '[]')) AS j (username text)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = j.username)),
    'cron_grants',
    CASE WHEN pg_catalog.to_regnamespace('cron') IS NOT NULL THEN pg_catalog.jsonb_build_object(
      'usage', pg_catalog.has_schema_privilege('cron', 'USAGE'),
      'usage_to_grant', pg_catalog.has_schema_privilege('cron', 'USAGE WITH GRANT OPTION'),
      'runner_usage', (SELECT pg_catalog.has_schema_privilege(r.oid, 'cron', 'USAGE')
                       FROM pg_catalog.pg_roles r WHERE r.rolname = 'jobwarden_runner')) END,
    'connect_grants', pg_catalog.jsonb_build_object(
      'to_grant', pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CONNECT WITH GRANT OPTION'),
      -- A role that is still to be made has what everybody has.
      'runner', COALESCE((SELECT pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CONNECT')
                          FROM pg_catalog.pg_roles r WHERE r.rolname = 'jobwarden_runner'),
                         pg_catalog.has_database_privilege('public', pg_catalog.current_database(), 'CONNECT'))));

  -- What we recorded. A role that may not read it gets null.
  v_part := NULL;
  BEGIN
    IF v_ours THEN
      EXECUTE $ledger$
        SELECT pg_catalog.jsonb_build_object(
          'release', (SELECT COALESCE(pg_catalog.max(s.release), 0) FROM jobwarden.source s),
          'sources', (SELECT COALESCE(pg_catalog.jsonb_object_agg(s.name, s.body), '{{}}') FROM jobwarden.source s),
          'objects', (SELECT COALESCE(pg_catalog.jsonb_object_agg(o.kind || ' ' || o.name, o.fingerprint), '{{}}')
                      FROM jobwarden.object o),
          'policy', (SELECT COALESCE(pg_catalog.jsonb_object_agg(p.action, pg_catalog.jsonb_build_object(
                       'timeout', extract(epoch FROM p.timeout)::bigint,
                       'retention', extract(epoch FROM p.retention)::bigint)), '{{}}') FROM jobwarden.policy p),
          'schedules', (SELECT COALESCE(pg_catalog.jsonb_object_agg(s.name, pg_catalog.jsonb_build_object(
                       'schedule', s.schedule, 'command', s.command,
                       'every', extract(epoch FROM s.every)::bigint, 'jobid', s.jobid)), '{{}}')
                        FROM jobwarden.schedule s))
      $ledger$ INTO v_part;
      v_part := v_part || pg_catalog.jsonb_build_object('actual', (
        SELECT COALESCE(pg_catalog.jsonb_object_agg(o.kind || ' ' || o.name, o.fingerprint), '{{}}')
        FROM ({objects}) AS o));
    END IF;
  EXCEPTION
    WHEN insufficient_privilege THEN v_part := NULL;
    -- Somebody dropped a part of ours. All of it counts as missing, so that an apply makes it anew.
    WHEN undefined_table OR undefined_column THEN
      v_part := '{{"release": 0, "sources": {{}}, "objects": {{}}, "actual": {{}}, "policy": {{}}, "schedules": {{}}}}';
  END;
  v_doc := v_doc || pg_catalog.jsonb_build_object('installed', v_ours, 'ledger', v_part);

  -- Running jobs by action, so that a plan can say how many a changed limit touches.
  v_part := NULL;
  BEGIN
    IF v_ours AND pg_catalog.to_regprocedure('jobwarden.running()') IS NOT NULL THEN
      EXECUTE 'SELECT COALESCE(pg_catalog.jsonb_object_agg(r.action, r.jobs), ''{{}}'') FROM jobwarden.running() AS r'
        INTO v_part;
    END IF;
  EXCEPTION WHEN OTHERS THEN
    v_part := NULL;  -- a broken installation must not keep the plan from showing the cure
  END;
  v_doc := v_doc || pg_catalog.jsonb_build_object('running', v_part);

  PERFORM pg_catalog.set_config('jobwarden.observed', v_doc::text, true);
END
$observe$;
SELECT pg_catalog.current_setting('jobwarden.observed') AS observed;
COMMIT;
