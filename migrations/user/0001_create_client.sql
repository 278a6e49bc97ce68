-- OAuth clients. One row is read for every token, by primary key.
-- secret_hash is HMAC-SHA256 under a pepper that is not in this database, so a copy of the table
-- neither reveals a secret nor allows a guess to be checked.
CREATE TABLE client (
    client_id   text        PRIMARY KEY,
    secret_hash bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
    tenant      text,
    scopes      text[]      NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now()
);
