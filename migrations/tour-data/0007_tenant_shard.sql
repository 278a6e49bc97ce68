-- Which tenants do not live in the schema `public`. Only the table in `public` counts; the other schemas have one too, since
-- all schemas are made by the same migrations.
CREATE TABLE tenant_shard (
    tenant_key       text   PRIMARY KEY,
    tenant_config_id bigint NOT NULL,
    shard            text   NOT NULL
);

-- Begins a tour of a tenant that is thought to live in a shard, and raises RL002 if it does not. Until the transaction
-- ends the tenant cannot move, and while it moves nobody gets past here.
--
-- The lock is shared and in memory: a row that each tour locked would be the next hot row. The function is VOLATILE, so that
-- the SELECT sees what was committed while the lock was waited for; above READ COMMITTED it would not.
CREATE FUNCTION enter_shard(key text, expected text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1414482516, hashtext(key));
    IF coalesce((SELECT s.shard FROM public.tenant_shard s WHERE s.tenant_key = key), 'public') <> expected THEN
        RAISE EXCEPTION 'tenant % does not live in %', key, expected USING ERRCODE = 'RL002';
    END IF;
    RETURN true;
END
$$;
