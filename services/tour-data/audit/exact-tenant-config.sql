-- What the tenant row shows in the end was written by one of the last tours. The last writer committed no earlier
-- than the tour that was sent last, so its 201 cannot have come before that moment: `modified_at` is at least the
-- earliest sending among the tours acknowledged from then on. A touch that drops writes falls behind this bound; one
-- that only reorders them (last writer wins) does not.
--
-- A tour that was committed but not acknowledged (a 503, a client that left) may be the last writer without being
-- in the bound. It shares its transaction id with the row version it wrote, and then nothing is claimed.
WITH sent AS (
    SELECT t.tenant_config_id, a.sent_at, a.acked_at, max(a.sent_at) OVER (PARTITION BY t.tenant_config_id) AS last_sent
    FROM acknowledged a
    JOIN tour t ON t.id = a.tour_id
), bound AS (
    SELECT tenant_config_id, min(sent_at) AS not_before
    FROM sent
    WHERE acked_at >= last_sent
    GROUP BY tenant_config_id
)
SELECT 'tenant ' || c.tenant_key AS subject,
       'modified_at is ' || c.modified_at || ', but its last acknowledged tours were sent from ' || b.not_before || ' on' AS detail
FROM bound b
JOIN tenant_config c ON c.id = b.tenant_config_id
WHERE c.modified_at < b.not_before
  AND NOT EXISTS (
      SELECT
      FROM tour t
      WHERE t.tenant_config_id = c.id
        AND t.xmin = c.xmin
        AND NOT EXISTS (SELECT FROM acknowledged a WHERE a.tour_id = t.id)
  )
