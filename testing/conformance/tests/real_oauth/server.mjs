// An authorisation server (`oidc-provider`) and an MCP server behind it (the MCP SDK), both of others; this only says how they are set up.
// `node server.mjs DIRECTORY`, where the packages are installed. Prints one line of JSON with the addresses; ends with its standard input.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

// The packages lie where they were installed, not beside this file.
const require = createRequire(path.join(process.argv[2], 'package.json'));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: Provider } = await load('oidc-provider');
const { default: express } = await load('express');
const { z } = await load('zod');
const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { mcpAuthMetadataRouter, getOAuthProtectedResourceMetadataUrl } = await load('@modelcontextprotocol/sdk/server/auth/router.js');
const { requireBearerAuth } = await load('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
const { InvalidTokenError } = await load('@modelcontextprotocol/sdk/server/auth/errors.js');

const listen = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));

let answerIssuer, answerResource;
const issuerServer = createServer((request, response) => answerIssuer(request, response));
const resourceServer = createServer((request, response) => answerResource(request, response));
const issuer = `http://127.0.0.1:${await listen(issuerServer)}`;
const resource = new URL(`http://127.0.0.1:${await listen(resourceServer)}/mcp`);

// It knows the tokens; the MCP server asks it about each (RFC 7662).
const CHECKER = { client_id: 'resource-server', client_secret: randomUUID() };

const provider = new Provider(issuer, {
  clients: [{ ...CHECKER, redirect_uris: [], response_types: [], grant_types: [] }],
  scopes: ['openid', 'offline_access'],
  pkce: { required: () => true },
  ttl: { AccessToken: 120, RefreshToken: 600, Grant: 600, Session: 600, Interaction: 600 },
  // Every refresh token counts once.
  rotateRefreshToken: true,
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (context, indicator) => {
        if (indicator !== resource.href) throw new Error('another resource');
        return { scope: 'tools', audience: resource.href, accessTokenFormat: 'opaque', accessTokenTTL: 120 };
      },
    },
  },
  findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
for (const failed of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error']) {
  provider.on(failed, (context, error) => console.error(failed, error.message, error.error_description ?? '', error.error_detail ?? ''));
}
answerIssuer = provider.callback();

const forgotten = new Set();
const verifier = {
  async verifyAccessToken(token) {
    const basic = Buffer.from(`${CHECKER.client_id}:${CHECKER.client_secret}`).toString('base64');
    const asked = await fetch(`${issuer}/token/introspection`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ token }),
    });
    const said = await asked.json();
    const audience = [said.aud].flat();
    if (!said.active || forgotten.has(token) || !audience.includes(resource.href)) throw new InvalidTokenError('not a token for this');
    return { token, clientId: said.client_id, scopes: (said.scope ?? '').split(' '), expiresAt: said.exp };
  },
};

const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const app = express();
app.use(express.json({ limit: '4mb' }));
app.use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: resource, scopesSupported: ['tools'] }));
const checks = requireBearerAuth({
  verifier, requiredScopes: ['tools'], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
});
// For the test: a token is not taken any more, as if its time were over.
app.post('/forget', express.urlencoded(), (request, response) => {
  forgotten.add(request.body.token);
  response.status(204).end();
});
const sessions = new Map();
app.all('/mcp', checks, async (request, response) => {
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    const server = new McpServer({ name: 'guarded', version: '1' });
    server.registerTool('whoami', { description: 'Says who asks', inputSchema: { greeting: z.string() } }, async ({ greeting }, extra) => ({
      content: [{ type: 'text', text: `${greeting}, client ${extra.authInfo.clientId} with ${extra.authInfo.scopes.join(' ')}` }],
    }));
    await server.connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
answerResource = app;

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
console.log(JSON.stringify({ issuer, resource: resource.href }));
