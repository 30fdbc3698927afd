import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { isAboutApi, isAboutCredentialsOfApp, isAboutSecret } from './error-texts.ts';
import { ForgeTransport } from './forge-transport.ts';

const api = 'https://git.example.com';
const transport = new ForgeTransport({ api, tokenName: 'Secret default/forge', network: DEFAULT_NETWORK });
afterAll(() => transport.close());

const request = `GET ${api}/repos/owner/packages/pulls`;

test('what the host has not found names the address and the kind of its API', () => {
  expect(transport.errorOf(request, { status: 404, headers: {}, text: '' }).message).toMatch(
    /Secret default\/forge cannot read it, or forge\.api \(.*\/api\/v1\) or forge\.provider/,
  );
});

test('what the host has not found, and nothing else, is recognized by its message', () => {
  const status = fc.oneof(fc.constantFrom(401, 403, 404, 422, 429, 502), fc.integer({ min: 300, max: 599 }));
  const message = fc.oneof(fc.string(), fc.constantFrom('status 404', 'see forge.api ', 'API rate limit exceeded'));
  fc.assert(
    fc.property(status, message, (of, said) => {
      const error = transport.errorOf(request, { status: of, headers: {}, text: JSON.stringify({ message: said }) });
      expect(isAboutApi(`cannot open it: ${error.message}`)).toBe(isSluiceError(error, 'NotFound'));
    }),
    { numRuns: runs(100) },
  );
});

test('a host without a response names the address of its API', async () => {
  const unreached = 'http://127.0.0.1:1/api/v1';
  const refused = new ForgeTransport({ api: unreached, tokenName: 'Secret default/forge', network: DEFAULT_NETWORK });
  const { signal } = new AbortController();
  const sent = refused.send({ url: `${unreached}/x`, method: 'GET', headers: {}, body: null, secret: 'S', signal });
  const error: unknown = await sent.catch((failure: unknown) => failure);
  expect(error).toMatchObject({ code: 'Unavailable', message: expect.stringContaining('forge.api') });
  expect(isAboutApi((error as Error).message)).toBe(true);
  await refused.close();
});

test('the credentials of an App, and a Secret, are recognized as words, and not in addresses and other names', () => {
  for (const about of ['install App 7 in a/b', 'the host does not accept the App', 'the private key of the App in x'])
    expect(isAboutCredentialsOfApp(about)).toBe(true);
  for (const other of ['GET https://git.example.com/repos/owner/App/pulls: status 404', 'the App/x', 'My-App 1'])
    expect(isAboutCredentialsOfApp(other)).toBe(false);
  expect(isAboutSecret('the token of Secret default/forge.', 'default', 'forge')).toBe(true);
  for (const other of ['Secret default/forge2', 'Secret default/forge.two', 'Secret default/forge-b', 'Secret a/forge'])
    expect(isAboutSecret(`the token of ${other} is not valid`, 'default', 'forge')).toBe(false);
});
