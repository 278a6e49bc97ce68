-- A message may come twice, but never for a tour that was rolled back or never written.
SELECT 'message ' || d.message_id AS subject, 'announces a tour that does not exist' AS detail
FROM delivered d
WHERE NOT EXISTS (SELECT FROM tour t WHERE t.id::text = d.message_id)
