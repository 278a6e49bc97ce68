-- A tenant lives in one schema: there is one row of it, the directory says where that is, and its tours lie there with all
-- their rows. What lies elsewhere no request can find. Where there is the schema `public` alone, nothing can.
--
-- `tableoid` is the table that a row really is in, also where several schemas are looked at as one.
WITH place AS (
    SELECT oid AS tableoid, relnamespace::regnamespace::text AS schema FROM pg_class
), home AS (
    SELECT c.id, c.tenant_key, p.schema, coalesce(d.shard, 'public') AS said
    FROM tenant_config c
    JOIN place p ON p.tableoid = c.tableoid
    LEFT JOIN public.tenant_shard d ON d.tenant_key = c.tenant_key
), tour_place AS (
    SELECT t.id, t.tenant_config_id, p.schema FROM tour t JOIN place p ON p.tableoid = t.tableoid
), stop_place AS (
    SELECT s.id, s.tour_id, s.address_id, p.schema FROM stop s JOIN place p ON p.tableoid = s.tableoid
), order_place AS (
    SELECT o.id, o.stop_id, o.address_id, p.schema FROM tour_order o JOIN place p ON p.tableoid = o.tableoid
)
SELECT 'tenant ' || tenant_key AS subject, 'has ' || count(*) || ' rows, in ' || string_agg(schema, ', ' ORDER BY schema) AS detail
FROM home
GROUP BY id, tenant_key
HAVING count(*) > 1
UNION ALL
SELECT 'tenant ' || tenant_key, 'has its row in ' || schema || ' and is said to live in ' || said
FROM home
WHERE schema <> said
UNION ALL
SELECT 'tenant ' || d.tenant_key, 'is said to live in ' || d.shard || ' and has no row'
FROM public.tenant_shard d
WHERE NOT EXISTS (SELECT FROM home h WHERE h.tenant_key = d.tenant_key)
UNION ALL
SELECT 'tour ' || t.id, 'lies in ' || t.schema || ', its tenant ' || coalesce(h.tenant_key || ' in ' || h.schema, t.tenant_config_id || ' nowhere')
FROM tour_place t
LEFT JOIN home h ON h.id = t.tenant_config_id
WHERE t.schema IS DISTINCT FROM h.schema
UNION ALL
SELECT 'stop ' || s.id, 'lies in ' || s.schema || ', its tour in ' || t.schema
FROM stop_place s
JOIN tour_place t ON t.id = s.tour_id
WHERE s.schema <> t.schema
UNION ALL
SELECT 'order ' || o.id, 'lies in ' || o.schema || ', its stop in ' || s.schema
FROM order_place o
JOIN stop_place s ON s.id = o.stop_id
WHERE o.schema <> s.schema
UNION ALL
SELECT 'position ' || r.id, 'lies in ' || p.schema || ', its order in ' || o.schema
FROM order_position r
JOIN place p ON p.tableoid = r.tableoid
JOIN order_place o ON o.id = r.order_id
WHERE p.schema <> o.schema
UNION ALL
SELECT 'address ' || a.id, 'lies in ' || p.schema || ', what it belongs to in ' || o.schema
FROM address a
JOIN place p ON p.tableoid = a.tableoid
JOIN (SELECT address_id, schema FROM stop_place UNION ALL SELECT address_id, schema FROM order_place) o ON o.address_id = a.id
WHERE p.schema <> o.schema
