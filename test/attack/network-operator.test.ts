import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OperatorNetwork, operatorNetwork } from './support/operator-network.ts';

// A program for each.
let at: OperatorNetwork;
beforeAll(async () => {
  at = await operatorNetwork();
});
afterAll(() => at[Symbol.asyncDispose]());

test('a host whose name leads to a local address is refused by the program, with the option that permits it', async () => {
  const before = at.git.requests.length;
  // Whatever its text says, the name of this machine leads to it.
  for (const host of [hostname(), 'localhost']) {
    const { code, output } = await at.up(`https://${host}:${at.port}/packages.git`, ['--git-ca', at.authorities]);
    expect(code).toBe(1);
    expect(output).toContain(`--allow-git-host ${host.toLowerCase()}:${at.port}`);
  }
  expect(at.git.requests).toHaveLength(before);
});

test('an authority by --git-ca is trusted from the first fetch on', async () => {
  const words = ['--git-ca', at.authorities, '--allow-git-host', `localhost:${at.port}`];
  const before = at.git.requests.length;
  expect(await at.up(`https://localhost:${at.port}/packages.git`, words)).toMatchObject({ code: 0 });
  expect(at.git.requests.slice(before).map(({ status }) => status)).not.toContain(undefined);
  expect(at.git.requests.length).toBeGreaterThan(before);
});

test('without that authority the repository is not read', async () => {
  const { code, output } = await at.up(`https://localhost:${at.port}/packages.git`, ['--allow-git-host', 'localhost']);
  expect(code).toBe(1);
  expect(output).toMatch(/unknown authority/);
});

test('plain http needs the permission', async () => {
  const url = `${at.git.url}/packages.git`.replace('127.0.0.1', 'localhost');
  const { host } = new URL(url);
  const refused = await at.up(url, []);
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(`--allow-git-host ${host}`) });
  expect(await at.up(url, ['--allow-git-host', host])).toMatchObject({ code: 0 });
});

test('invalid permissions and authorities are reported before anything is written', async () => {
  expect(await at.up('https://git.example.com/a.git', ['--allow-git-host', 'http://x'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('HOST:PORT'),
  });
  expect(await at.up('https://git.example.com/a.git', ['--git-ca', join(at.folder, 'none.pem')])).toMatchObject({
    code: 2,
    output: expect.stringContaining('--git-ca'),
  });
});

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
