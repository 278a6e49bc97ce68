-- The five tables one Create Tour fills: 1 tour, 9 stops, 17 orders, 34 positions and their 26 addresses for the
-- shipped payload.
--
-- Ids are UUID version 7 made by the service: no round trip for a generated key, and new entries go to the right
-- edge of each index.
--
-- No foreign key points at `tenant_config`: each INSERT of a tour would take a KEY SHARE lock on the row that every
-- tour also updates. None between these tables either: their rows are only ever written together, in one
-- transaction, under ids that the service has just made, so 86 checks a tour would cost a query and a row lock each
-- and could not fail. That the rows are complete is verified from outside, by the audit.
CREATE TABLE tour (
    id               uuid        PRIMARY KEY,
    tenant_config_id bigint      NOT NULL,
    tour_number      text        NOT NULL,
    trip_number      text        NOT NULL,
    tour_status      text        NOT NULL,
    tour_date        date        NOT NULL,
    vehicle_number   text        NOT NULL,
    license_plate    text,
    vehicle_type     text        NOT NULL,
    driver_number    text        NOT NULL,
    driver_first_name text,
    driver_last_name text,
    driver_phone     text,
    idempotency_key  text,
    request_digest   bytea       NOT NULL CONSTRAINT tour_request_digest_is_sha256 CHECK (octet_length(request_digest) = 32),
    created_at       timestamptz NOT NULL
);

CREATE TABLE address (
    id             uuid    PRIMARY KEY,
    name           text    NOT NULL,
    contact_person text,
    phone          text,
    street         text    NOT NULL,
    postal_code    text    NOT NULL,
    city           text    NOT NULL,
    country_code   text    NOT NULL,
    latitude_e6    integer NOT NULL,
    longitude_e6   integer NOT NULL
);

CREATE TABLE stop (
    id                uuid        PRIMARY KEY,
    tour_id           uuid        NOT NULL,
    address_id        uuid        NOT NULL,
    sequence          integer     NOT NULL,
    stop_type         text        NOT NULL,
    planned_arrival   timestamptz NOT NULL,
    planned_departure timestamptz NOT NULL
);

CREATE TABLE tour_order (
    id              uuid PRIMARY KEY,
    stop_id         uuid NOT NULL,
    address_id      uuid NOT NULL,
    order_number    text NOT NULL,
    customer_number text NOT NULL,
    order_type      text NOT NULL,
    reference       text
);

CREATE TABLE order_position (
    id              uuid    PRIMARY KEY,
    order_id        uuid    NOT NULL,
    position_number integer NOT NULL,
    article_number  text    NOT NULL,
    description     text    NOT NULL,
    quantity        integer NOT NULL,
    unit            text    NOT NULL,
    weight_grams    bigint  NOT NULL
);

-- Reading a tour walks from parent to children.
CREATE INDEX stop_tour ON stop (tour_id);
CREATE INDEX tour_order_stop ON tour_order (stop_id);
CREATE INDEX order_position_order ON order_position (order_id);

-- Pages of a tenant's tours, newest first, by keyset.
CREATE INDEX tour_tenant_page ON tour (tenant_config_id, id);

-- A repeated key makes one tour, even when both requests run at once on two replicas. Keys belong to a tenant;
-- tours created without one take no space here.
CREATE UNIQUE INDEX tour_idempotency_key ON tour (tenant_config_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
