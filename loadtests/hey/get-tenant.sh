#!/bin/sh
# The token check with the tool it was published with: GET of a tenant's configuration with a valid token.
#
#   cargo rowlock up --set GATEWAY_RATE_LIMIT=60000000      prints the front's address and a client's credentials
#   FRONT=http://127.0.0.1:… CLIENT_ID=… CLIENT_SECRET=… loadtests/hey/get-tenant.sh
#
# `cargo rowlock setup` installs hey. DURATION (10s), CONNECTIONS (10) and TENANT change the load; with TOKEN set, no
# credentials are needed. With the usual rate limit most of so quick a load is answered with 429.
set -eu
: "${FRONT:?set it to the address that cargo rowlock up prints}"
if [ -z "${TOKEN:-}" ]; then
    : "${CLIENT_ID:?set it, or TOKEN}" "${CLIENT_SECRET:?set it, or TOKEN}"
    TOKEN=$(curl -sSf -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials "$FRONT/oauth2/token" |
        sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')
fi
exec hey -z "${DURATION:-10s}" -c "${CONNECTIONS:-10}" -H "Authorization: Bearer $TOKEN" \
    "$FRONT/api/v1/tenants/${TENANT:-BEHNGT}"
