-- What the schema leaves out: the foreign key of a tour. Each INSERT of a tour then looks whether its tenant is there, and
-- keeps that row from going away with FOR KEY SHARE until the end of the transaction. Several transactions may hold that at
-- once, also beside one that updates the row (FOR NO KEY UPDATE), but beside none that takes FOR UPDATE.
ALTER TABLE tour ADD CONSTRAINT tour_tenant_config FOREIGN KEY (tenant_config_id) REFERENCES tenant_config (id);
