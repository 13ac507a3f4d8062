-- The objects of ours that are there, each with a fingerprint of what it is and who may use it.
-- Written down after an apply and compared by a plan: a difference is somebody's hand.
SELECT 'function' AS kind,
       pg_catalog.format('%s(%s)', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) AS name,
       pg_catalog.md5(pg_catalog.concat_ws('|', pg_catalog.pg_get_userbyid(p.proowner), p.prokind, p.prosecdef,
         p.provolatile, p.proconfig, p.prosrc, p.proacl)) AS fingerprint
FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('jobwarden')
UNION ALL
SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, c.relname,
       pg_catalog.md5(pg_catalog.concat_ws('|', pg_catalog.pg_get_userbyid(c.relowner), c.relacl, c.reloptions,
         (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attname, a.atttypid::regtype, a.attnotnull, a.attacl), ','
                                       ORDER BY a.attnum)
          FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
         CASE c.relkind WHEN 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END))
FROM pg_catalog.pg_class c
WHERE c.relnamespace = pg_catalog.to_regnamespace('jobwarden') AND c.relkind IN ('r', 'v')
UNION ALL
SELECT 'trigger', t.tgname,
       pg_catalog.md5(pg_catalog.concat_ws('|', t.tgenabled, pg_catalog.pg_get_triggerdef(t.oid)))
FROM pg_catalog.pg_trigger t
WHERE NOT t.tgisinternal AND t.tgfoid IN (
  SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('jobwarden'))
