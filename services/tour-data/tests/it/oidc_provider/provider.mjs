// A second, real OpenID provider for the tests: client_credentials, keys of its own, and access tokens for the one
// resource it knows, either as JWT (RFC 9068, RS256) or as opaque texts that only it can explain. Prints its issuer URL
// once it listens, and ends when its standard input does.
// Arguments: the folder of the package, the audience, the name of the tenant claim, `jwt` or `opaque`.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [folder, audience, tenantClaim, accessTokenFormat] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`).href);

const resource = 'urn:rowlock:tours';
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const client = (id, tenant) => ({
  client_id: id,
  client_secret: `${id}-secret`,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  tenant,
});

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client('tours', 'BEHNGT'), client('others', 'NORDEX')],
    extraClientMetadata: { properties: ['tenant'] },
    extraTokenClaims: (_, token) => ({ [tenantClaim]: token.client.tenant }),
    jwks: { keys: [{ ...key, kid: 'of-the-provider', use: 'sig', alg: 'RS256' }] },
    scopes: ['tours:read', 'tours:write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: () => ({
          scope: 'tours:read tours:write',
          audience,
          accessTokenFormat,
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});

process.stdin.on('end', () => process.exit(0)).resume();
