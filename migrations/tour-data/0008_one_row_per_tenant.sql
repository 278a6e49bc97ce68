-- A tenant has one row, in the schema that it lives in. All schemas are made by the same migrations, so each was made with
-- all the tenants; in those that a tenant does not live in, its row was nobody's, and could be taken for the tenant's own.
DELETE FROM tenant_config_slot s
WHERE current_schema() <> 'public'
  AND NOT EXISTS (
      SELECT FROM public.tenant_shard d WHERE d.tenant_config_id = s.tenant_config_id AND d.shard = current_schema()
  );

DELETE FROM tenant_config c
WHERE current_schema() <> 'public'
  AND NOT EXISTS (
      SELECT FROM public.tenant_shard d WHERE d.tenant_config_id = c.id AND d.shard = current_schema()
  );
