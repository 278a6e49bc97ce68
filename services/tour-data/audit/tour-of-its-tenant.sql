-- A tour belongs to the tenant whose token and payload it was created with: one that lies under another tenant is a loss for
-- the first and a leak to the second. (That it is there at all is `lost-acknowledged`.)
SELECT 'tour ' || a.tour_id AS subject,
       'was acknowledged to ' || a.tenant || ' and belongs to ' || coalesce(c.tenant_key, 'tenant ' || t.tenant_config_id || ', which does not exist') AS detail
FROM acknowledged a
JOIN tour t ON t.id = a.tour_id
LEFT JOIN tenant_config c ON c.id = t.tenant_config_id
WHERE c.tenant_key IS DISTINCT FROM a.tenant
