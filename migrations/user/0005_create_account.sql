-- People, as opposed to clients. The password is kept as argon2id, with its own salt and under a pepper that is not
-- in this database; the costs stand beside it, so that they can be raised without asking everybody for a new password.
-- username is stored in lower case, which makes its uniqueness one of letters, not of their case.
CREATE TABLE account (
    id              uuid        PRIMARY KEY,
    username        text        NOT NULL CONSTRAINT account_username UNIQUE CHECK (username = lower(username)),
    email           text        CONSTRAINT account_email UNIQUE,
    password_hash   bytea       NOT NULL CHECK (octet_length(password_hash) = 32),
    password_salt   bytea       NOT NULL CHECK (octet_length(password_salt) = 16),
    password_kib    integer     NOT NULL,
    password_passes integer     NOT NULL,
    tenant          text,
    scopes          text[]      NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now()
);
