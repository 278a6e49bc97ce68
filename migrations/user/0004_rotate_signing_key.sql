-- Several keys at once: one that signs, one that is published before it signs, those whose tokens are still out.
-- The key that signs is the one with the latest signs_from that has passed; retires_at is set when a successor is
-- made, to the moment the last token the key signs has expired. Both are moments of this server's clock, so that
-- all replicas change keys together whatever their own clocks say.
ALTER TABLE signing_key
    ADD COLUMN signs_from timestamptz,
    ADD COLUMN retires_at timestamptz;
UPDATE signing_key SET signs_from = created_at;
ALTER TABLE signing_key
    ALTER COLUMN signs_from SET NOT NULL,
    ALTER COLUMN signs_from SET DEFAULT now();
