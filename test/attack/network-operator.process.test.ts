import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OperatorNetwork, operatorNetwork } from './support/operator-network.ts';

// What the quick tests say by options, by the environment: a program for each.
let at: OperatorNetwork;
beforeAll(async () => {
  at = await operatorNetwork();
});
afterAll(() => at[Symbol.asyncDispose]());

test.each([
  ['SLUICE_GIT_CA', (ca: string) => [[], { SLUICE_GIT_CA: ca }] as const],
  ['NODE_EXTRA_CA_CERTS', (ca: string) => [[], { NODE_EXTRA_CA_CERTS: ca }] as const],
])('an authority by %s is trusted from the first fetch on', async (_name, say) => {
  const [words, environment] = say(at.authorities);
  const allowed = ['--allow-git-host', `localhost:${at.port}`];
  const url = `https://localhost:${at.port}/packages.git`;
  const before = at.git.requests.length;
  expect(await at.up(url, [...words, ...allowed], environment)).toMatchObject({ code: 0 });
  expect(at.git.requests.slice(before).map(({ status }) => status)).not.toContain(undefined);
  expect(at.git.requests.length).toBeGreaterThan(before);
});

test('plain http is permitted by the environment', async () => {
  const url = `${at.git.url}/packages.git`.replace('127.0.0.1', 'localhost');
  const environment = { SLUICE_ALLOW_GIT_HOST: `other:1, ${new URL(url).host}` };
  expect(await at.up(url, [], environment)).toMatchObject({ code: 0 });
});
