-- Inserts and updates leave half of each page of the hot table free for heap-only updates; the table is written anew, so that
-- it holds for what is there.
ALTER TABLE tenant_config SET (fillfactor = 50);
CLUSTER tenant_config USING tenant_config_pkey;
