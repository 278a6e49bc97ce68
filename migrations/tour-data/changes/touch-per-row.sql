-- Every row of a tour touches its tenant, as object mappers do that are told to keep a parent's time of change: 86 more updates
-- of the hot row a tour, in the transaction that has it locked already. They cost little as long as the versions they leave
-- behind can be removed.
CREATE FUNCTION remember_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('rowlock.tenant', NEW.tenant_config_id::text, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER remember_tenant AFTER INSERT ON tour FOR EACH ROW EXECUTE FUNCTION remember_tenant();

CREATE FUNCTION touch_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tenant_config SET modified_at = clock_timestamp() WHERE id = current_setting('rowlock.tenant')::bigint;
    RETURN NULL;
END
$$;
CREATE TRIGGER touch_tenant AFTER INSERT ON address FOR EACH ROW EXECUTE FUNCTION touch_tenant();
CREATE TRIGGER touch_tenant AFTER INSERT ON stop FOR EACH ROW EXECUTE FUNCTION touch_tenant();
CREATE TRIGGER touch_tenant AFTER INSERT ON tour_order FOR EACH ROW EXECUTE FUNCTION touch_tenant();
CREATE TRIGGER touch_tenant AFTER INSERT ON order_position FOR EACH ROW EXECUTE FUNCTION touch_tenant();
