-- Not every client may do everything: a load client asks for tokens, a resource server asks about them.
-- The defaults are what clients could do before, so that a release that does not know these columns still writes rows.
ALTER TABLE client
    ADD COLUMN grants     text[]  NOT NULL DEFAULT '{client_credentials}',
    ADD COLUMN introspect boolean NOT NULL DEFAULT false;
