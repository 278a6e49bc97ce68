-- Every acknowledged tour was announced at least once. The one excuse is an announcement that declares to lose messages: which
-- of these a fault covers is for the lab to say, so the subject is the bare id.
SELECT a.tour_id::text AS subject, 'was acknowledged at ' || a.acked_at || ' and no message announced it' AS detail
FROM acknowledged a
WHERE NOT EXISTS (SELECT FROM delivered d WHERE d.message_id = a.tour_id::text AND d.copies > 0)
