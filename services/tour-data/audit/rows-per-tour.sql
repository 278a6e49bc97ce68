-- Every tour has exactly the rows of the payload: a plan that loses a row (or writes one twice) is not faster, it
-- is wrong. Counted along the references, so that a missing address shows as well as a missing stop. Where payloads
-- differ, no number is expected of all: a tour has the rows that its 201 told, and there is none without a 201.
WITH counted AS (
    SELECT t.id,
           1 + count(DISTINCT s.id) + count(DISTINCT sa.id) + count(DISTINCT o.id) + count(DISTINCT oa.id)
             + count(DISTINCT p.id) AS rows
    FROM tour t
    LEFT JOIN stop s ON s.tour_id = t.id
    LEFT JOIN address sa ON sa.id = s.address_id
    LEFT JOIN tour_order o ON o.stop_id = s.id
    LEFT JOIN address oa ON oa.id = o.address_id
    LEFT JOIN order_position p ON p.order_id = o.id
    GROUP BY t.id
)
SELECT 'tour ' || c.id AS subject,
       'has ' || c.rows || ' rows, expected ' || coalesce(coalesce(e.rows_per_tour, a.rows)::text, 'none without a 201') AS detail
FROM counted c
CROSS JOIN expectation e
LEFT JOIN acknowledged a ON a.tour_id = c.id
WHERE c.rows IS DISTINCT FROM coalesce(e.rows_per_tour, a.rows)
UNION ALL
-- Rows that no tour reaches: the remains of a transaction that was not one.
SELECT 'stop ' || s.id, 'belongs to tour ' || s.tour_id || ', which does not exist'
FROM stop s
WHERE NOT EXISTS (SELECT FROM tour t WHERE t.id = s.tour_id)
UNION ALL
SELECT 'order ' || o.id, 'belongs to stop ' || o.stop_id || ', which does not exist'
FROM tour_order o
WHERE NOT EXISTS (SELECT FROM stop s WHERE s.id = o.stop_id)
UNION ALL
SELECT 'position ' || p.id, 'belongs to order ' || p.order_id || ', which does not exist'
FROM order_position p
WHERE NOT EXISTS (SELECT FROM tour_order o WHERE o.id = p.order_id)
UNION ALL
SELECT 'addresses', count(*) || ' are used by no stop and no order'
FROM address a
WHERE NOT EXISTS (SELECT FROM stop s WHERE s.address_id = a.id)
  AND NOT EXISTS (SELECT FROM tour_order o WHERE o.address_id = a.id)
HAVING count(*) > 0
