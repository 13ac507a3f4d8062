-- The objects of ours that are there, each with a fingerprint of what it is and who may use it.
-- Written down after an apply and compared by a plan: a difference is somebody's hand.
SELECT 'function' AS kind,
       pg_catalog.format('%s(%s)', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) AS name,
       pg_catalog.md5(pg_catalog.concat_ws('|', pg_catalog.pg_get_userbyid(p.proowner), p.prokind, p.prosecdef,
         p.provolatile, p.proconfig, p.prosrc,
         (SELECT pg_catalog.array_agg(acl::text ORDER BY acl::text) FROM pg_catalog.unnest(p.proacl) AS acl))) AS fingerprint
FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('jobwarden')
UNION ALL
SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'r' THEN 'table' ELSE 'relation' END, c.relname,
       pg_catalog.md5(pg_catalog.concat_ws('|', pg_catalog.pg_get_userbyid(c.relowner), c.reloptions,
         (SELECT pg_catalog.array_agg(acl::text ORDER BY acl::text) FROM pg_catalog.unnest(c.relacl) AS acl),
         (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attname, a.atttypid::regtype, a.attnotnull, a.attacl), ','
                                       ORDER BY a.attnum)
          FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
         CASE c.relkind WHEN 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END))
FROM pg_catalog.pg_class c
WHERE c.relnamespace = pg_catalog.to_regnamespace('jobwarden') AND (c.relkind IN ('r', 'v', 'm', 'f', 'p', 'c')
  -- Sequences of identity columns belong to their tables.
  OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')))
UNION ALL
SELECT 'type', t.typname, pg_catalog.md5(pg_catalog.concat_ws('|', pg_catalog.pg_get_userbyid(t.typowner), t.typtype, t.typacl))
FROM pg_catalog.pg_type t
WHERE t.typnamespace = pg_catalog.to_regnamespace('jobwarden') AND t.typtype IN ('e', 'd', 'r')
UNION ALL
SELECT 'trigger', t.tgname,
       pg_catalog.md5(pg_catalog.concat_ws('|', t.tgenabled, pg_catalog.pg_get_triggerdef(t.oid)))
FROM pg_catalog.pg_trigger t
WHERE NOT t.tgisinternal AND t.tgfoid IN (
  SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('jobwarden'))
