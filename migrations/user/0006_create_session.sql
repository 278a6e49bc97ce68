-- A session is one login. Its refresh tokens form a family: each is used once and replaced by the next, and when a
-- used one comes back, somebody has a copy, so the whole session ends. Used tokens are kept until then, since
-- otherwise nobody could tell a stolen token from an invented one.
CREATE TABLE session (
    id         uuid        PRIMARY KEY,
    account_id uuid        NOT NULL REFERENCES account ON DELETE CASCADE,
    client_id  text        NOT NULL,
    scopes     text[]      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX session_account ON session (account_id);
CREATE INDEX session_expires ON session (expires_at);

-- hash is HMAC-SHA256 under the pepper, as for client secrets: the token is random, so there is nothing to guess.
CREATE TABLE refresh_token (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    session_id uuid        NOT NULL REFERENCES session ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX refresh_token_session ON refresh_token (session_id);

-- Access tokens that were revoked before their time, for introspection; those of an ended session are not listed.
CREATE TABLE revoked_token (
    jti        text        PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX revoked_token_expires ON revoked_token (expires_at);
