-- A message may come twice, but never for a tour that was rolled back or never written.
--
-- A crash of a server that is set up to lose the last commits (a row of `crash`) can also cost a tour that was announced and
-- not acknowledged yet. Its id tells when its request came: before the crash, and no longer than a request may take.
SELECT 'message ' || d.message_id AS subject, 'announces a tour that does not exist' AS detail
FROM delivered d
WHERE NOT EXISTS (SELECT FROM tour t WHERE t.id::text = d.message_id)
  AND NOT EXISTS (
      SELECT
      FROM crash c
      WHERE NOT EXISTS (SELECT FROM acknowledged a WHERE a.tour_id::text = d.message_id)
        -- A UUID of version 7 begins with its time, milliseconds in 48 bits.
        AND d.message_id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7'
        AND to_timestamp(('x' || replace(left(d.message_id, 13), '-', ''))::bit(48)::bigint / 1000.0)
            BETWEEN c.began_at - interval '60 s' AND c.ended_at
  )
