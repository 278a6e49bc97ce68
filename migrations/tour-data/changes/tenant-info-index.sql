-- A unique index over a column that tours change. A foreign key could refer to it, so PostgreSQL treats an UPDATE that changes
-- `tenant_info` like one that changes the row's key: it takes FOR UPDATE where it took FOR NO KEY UPDATE, is no heap-only
-- update any more, and waits for every transaction that holds FOR KEY SHARE.
CREATE UNIQUE INDEX tenant_config_info ON tenant_config (tenant_key, tenant_info);
