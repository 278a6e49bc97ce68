-- Every 201 is a tour that exists. The one excuse is a crash of a server that is set up to lose the last commits: which of
-- these it covers is for the lab to say, who knows when the crash was and what was declared, so the subject is the bare id.
SELECT a.tour_id::text AS subject, 'was acknowledged at ' || a.acked_at || ' and does not exist' AS detail
FROM acknowledged a
WHERE NOT EXISTS (SELECT FROM tour t WHERE t.id = a.tour_id)
