-- Every acknowledged tour was announced at least once.
SELECT 'tour ' || a.tour_id AS subject, 'was acknowledged at ' || a.acked_at || ' and no message announced it' AS detail
FROM acknowledged a
WHERE NOT EXISTS (SELECT FROM delivered d WHERE d.message_id = a.tour_id::text AND d.copies > 0)
