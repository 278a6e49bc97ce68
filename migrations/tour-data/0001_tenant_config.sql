-- One row per tenant, written by every tour of that tenant: the hot row.
--
-- Only the key columns are indexed. `modified_at`, `tenant` and `tenant_info` must stay without an index, or
-- their UPDATE is no longer a heap-only tuple (HOT) update. `tenant_key` is in the published UPDATE too, but with
-- its old value, and PostgreSQL compares values: the update stays HOT and takes the weaker row lock.
CREATE TABLE tenant_config (
    id          bigint      PRIMARY KEY,
    tenant      text        NOT NULL,
    tenant_key  text        NOT NULL CONSTRAINT tenant_config_tenant_key UNIQUE,
    tenant_info text,
    modified_at timestamptz NOT NULL
);
