-- Every 201 is a tour that was created with the key it was sent with, and was answered with the rows it should have. (That
-- it is there at all is `lost-acknowledged`; that its rows are, `rows-per-tour`.)
SELECT 'tour ' || a.tour_id AS subject,
       CASE
           WHEN a.rows IS DISTINCT FROM e.rows_per_tour THEN 'was acknowledged with ' || coalesce(a.rows::text, 'no') || ' rows, expected ' || e.rows_per_tour
           ELSE 'was acknowledged for key ' || a.idempotency_key || ' and carries ' || coalesce(t.idempotency_key, 'none')
       END AS detail
FROM acknowledged a
CROSS JOIN expectation e
JOIN tour t ON t.id = a.tour_id
WHERE a.rows IS DISTINCT FROM coalesce(e.rows_per_tour, a.rows)
   OR (a.idempotency_key IS NOT NULL AND t.idempotency_key IS DISTINCT FROM a.idempotency_key)
