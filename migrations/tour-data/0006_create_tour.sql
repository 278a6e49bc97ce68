-- What the inserters use that send a tour in one statement.

-- Whether a statement affected as many rows as it may. An answer would come too late to roll anything back: it comes when
-- everything is committed.
CREATE FUNCTION expect_rows(statement text, affected bigint, fewest bigint, most bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF affected < fewest OR affected > most THEN
        RAISE EXCEPTION '% affected % rows, expected %', statement, affected, most USING ERRCODE = 'RL001';
    END IF;
    RETURN true;
END
$$;

-- The rows of one tour, column by column: those of `tour`, then arrays for address, stop, tour_order and order_position, each
-- in the order of the INSERT below. Returns the number of rows. In plpgsql, which keeps the plans; a function in SQL would
-- be planned anew for each call.
CREATE FUNCTION create_tour(
    uuid, bigint, text, text, text, date, text, text, text, text, text, text, text, text, bytea, timestamptz,
    uuid[], text[], text[], text[], text[], text[], text[], text[], integer[], integer[],
    uuid[], uuid[], uuid[], integer[], text[], timestamptz[], timestamptz[],
    uuid[], uuid[], uuid[], text[], text[], text[], text[],
    uuid[], uuid[], integer[], text[], text[], integer[], text[], bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
    rows bigint;
BEGIN
    INSERT INTO tour (
        id, tenant_config_id, tour_number, trip_number, tour_status, tour_date, vehicle_number, license_plate,
        vehicle_type, driver_number, driver_first_name, driver_last_name, driver_phone, idempotency_key,
        request_digest, created_at
    )
    VALUES (
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
    );
    GET DIAGNOSTICS rows = ROW_COUNT;
    INSERT INTO address (
        id, name, contact_person, phone, street, postal_code, city, country_code, latitude_e6, longitude_e6
    )
    SELECT * FROM unnest(
        $17, $18, $19, $20, $21, $22, $23, $24, $25, $26
    );
    GET DIAGNOSTICS written = ROW_COUNT;
    rows := rows + written;
    INSERT INTO stop (
        id, tour_id, address_id, sequence, stop_type, planned_arrival, planned_departure
    )
    SELECT * FROM unnest(
        $27, $28, $29, $30, $31, $32, $33
    );
    GET DIAGNOSTICS written = ROW_COUNT;
    rows := rows + written;
    INSERT INTO tour_order (
        id, stop_id, address_id, order_number, customer_number, order_type, reference
    )
    SELECT * FROM unnest(
        $34, $35, $36, $37, $38, $39, $40
    );
    GET DIAGNOSTICS written = ROW_COUNT;
    rows := rows + written;
    INSERT INTO order_position (
        id, order_id, position_number, article_number, description, quantity, unit, weight_grams
    )
    SELECT * FROM unnest(
        $41, $42, $43, $44, $45, $46, $47, $48
    );
    GET DIAGNOSTICS written = ROW_COUNT;
    rows := rows + written;
    RETURN rows;
END
$$;
