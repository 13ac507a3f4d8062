-- What a box's server says of itself, whatever the database: settings and where they come from.
--
-- What:  one JSON document: version, standby or not, our settings, the files they are in, pg_hba and
--        pg_ident, and the logins of services.
-- Why:   which file wins, what waits for a restart, and whether a schedule can log in, are only
--        known to the server. The files themselves may be elsewhere, or not have been read yet.
-- Who:   a superuser on the box itself, through psql; infra/boxes.py reads the answer.
SELECT pg_catalog.jsonb_build_object(
  'version_num', pg_catalog.current_setting('server_version_num')::int,
  'in_recovery', pg_catalog.pg_is_in_recovery(),
  'identifier', (SELECT c.system_identifier::text FROM pg_catalog.pg_control_system() AS c),
  'databases', (SELECT pg_catalog.jsonb_agg(d.datname) FROM pg_catalog.pg_database AS d),
  'settings', (SELECT pg_catalog.jsonb_object_agg(s.name, pg_catalog.jsonb_build_object(
                 'value', pg_catalog.current_setting(s.name), 'source', s.source,
                 'context', s.context, 'pending', s.pending_restart))
               FROM pg_catalog.pg_settings AS s
               WHERE s.name LIKE 'cron.%' OR s.name = ANY ({names}) OR s.pending_restart),
  'files', (SELECT COALESCE(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
              'name', f.name, 'value', f.setting, 'file', f.sourcefile, 'line', f.sourceline,
              'applied', f.applied, 'error', f.error) ORDER BY f.seqno), '[]')
            FROM pg_catalog.pg_file_settings AS f
            WHERE f.name LIKE 'cron.%' OR f.name = ANY ({names}) OR f.error IS NOT NULL),
  'hba', pg_catalog.pg_read_file(pg_catalog.current_setting('hba_file')),
  'ident', pg_catalog.pg_read_file(pg_catalog.current_setting('ident_file')),
  -- A membership counts where its rights hold without a SET ROLE.
  'roles', (SELECT COALESCE(pg_catalog.jsonb_object_agg(r.rolname, pg_catalog.jsonb_build_object(
              'login', r.rolcanlogin, 'superuser', r.rolsuper, 'inherits', r.rolinherit,
              'groups', (SELECT COALESCE(pg_catalog.jsonb_agg(g.rolname), '[]')
                         FROM pg_catalog.pg_roles AS g
                         WHERE g.rolname = ANY ({groups})
                           AND pg_catalog.pg_has_role(r.oid, g.oid, 'USAGE')))), '{{}}')
            FROM pg_catalog.pg_roles AS r WHERE r.rolname = ANY ({roles}))
);
