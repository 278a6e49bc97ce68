-- What the touches use that do not write the tenant's row when and where the published UPDATE does. Nothing of it costs a
-- tour anything whose touch does not use it.

-- `deferred-trigger`: a marker a tour, gone with the COMMIT that it was there for. Nobody reads it after a crash, so it is
-- not logged.
CREATE UNLOGGED TABLE tenant_config_touch (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_config_id bigint      NOT NULL,
    tenant           text        NOT NULL,
    tenant_info      text,
    modified_at      timestamptz NOT NULL
);

CREATE FUNCTION touch_tenant_config() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenant_config
    SET modified_at = NEW.modified_at, tenant = NEW.tenant, tenant_info = NEW.tenant_info
    WHERE id = NEW.tenant_config_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'tenant_config has no row %', NEW.tenant_config_id;
    END IF;
    DELETE FROM tenant_config_touch WHERE id = NEW.id;
    RETURN NULL;
END
$$;

-- Deferred triggers run inside COMMIT: the row is locked for no round trip.
CREATE CONSTRAINT TRIGGER touch_tenant_config AFTER INSERT ON tenant_config_touch
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touch_tenant_config();

-- `append-fold`: an event a tour, until it is folded into the row.
CREATE TABLE tenant_config_event (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_config_id bigint      NOT NULL,
    tenant           text        NOT NULL,
    tenant_info      text,
    modified_at      timestamptz NOT NULL
);
CREATE INDEX tenant_config_event_newest ON tenant_config_event (tenant_config_id, modified_at);

-- `slots`: sixteen rows a tenant, all of them hot. Half of each page is left free, so that new versions find room there.
CREATE TABLE tenant_config_slot (
    tenant_config_id bigint      NOT NULL,
    slot             smallint    NOT NULL,
    tenant           text        NOT NULL,
    tenant_info      text,
    modified_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant_config_id, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION make_tenant_config_slots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tenant_config_slot (tenant_config_id, slot, tenant, tenant_info, modified_at)
    SELECT NEW.id, slot, NEW.tenant, NEW.tenant_info, NEW.modified_at FROM generate_series(0, 15) AS slot;
    RETURN NULL;
END
$$;
CREATE TRIGGER make_tenant_config_slots AFTER INSERT ON tenant_config
    FOR EACH ROW EXECUTE FUNCTION make_tenant_config_slots();

INSERT INTO tenant_config_slot (tenant_config_id, slot, tenant, tenant_info, modified_at)
SELECT id, slot, tenant, tenant_info, modified_at FROM tenant_config CROSS JOIN generate_series(0, 15) AS slot;
