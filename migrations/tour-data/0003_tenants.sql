-- The published system has 40 tenants and its load test uses one of them, BEHNGT: the other rows show that what
-- waits is a row and not the table. NORDEX is the tenant whose token must not create tours for BEHNGT.
INSERT INTO tenant_config (id, tenant, tenant_key, tenant_info, modified_at)
SELECT id, 'Beverages ' || tenant_key, tenant_key, NULL, '2025-01-01T00:00:00Z'
FROM (
    SELECT id,
           CASE id WHEN 7 THEN 'BEHNGT' WHEN 23 THEN 'NORDEX' ELSE 'TENANT' || lpad(id::text, 2, '0') END AS tenant_key
    FROM generate_series(1, 40) AS id
) AS tenants;
