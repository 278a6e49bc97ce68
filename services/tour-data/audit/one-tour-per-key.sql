-- A repeated Idempotency-Key makes one tour: neither the table nor the answers may show two for one key.
SELECT 'key ' || idempotency_key AS subject, 'made ' || count(*) || ' tours of tenant ' || tenant_config_id AS detail
FROM tour
WHERE idempotency_key IS NOT NULL
GROUP BY tenant_config_id, idempotency_key
HAVING count(*) > 1
UNION ALL
SELECT 'key ' || a.idempotency_key, 'was answered with ' || count(DISTINCT a.tour_id) || ' tours'
FROM acknowledged a
WHERE a.idempotency_key IS NOT NULL
GROUP BY a.idempotency_key
HAVING count(DISTINCT a.tour_id) > 1
