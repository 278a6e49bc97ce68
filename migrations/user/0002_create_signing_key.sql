-- The key that signs access tokens lives here, so that every replica of the service signs with the same one
-- and a restart does not invalidate the tokens that are out.
-- sealed is the PKCS#8 private key under AES-256-GCM (12 bytes nonce, ciphertext, 16 bytes tag);
-- the encryption key is derived from a secret of the service that is not in this database.
CREATE TABLE signing_key (
    kid        text        PRIMARY KEY,
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
