import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ensureAdminAccess } from './admin-access.ts';
import { tokenInKubeconfig } from './kubeconfig.ts';
import { TokenAuthenticator } from './token-authenticator.ts';
import { addToken, hashOfToken } from './token-file.ts';

interface Config {
  readonly clusters: readonly unknown[];
  readonly contexts: readonly unknown[];
  readonly preferences?: unknown;
  readonly 'current-context': string;
}

async function setUp() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const clock = new ManualClock();
  const kubeconfig = join(folder, 'kubeconfig');
  const tokenFile = join(folder, 'tokens.csv');
  const start = (server = 'https://127.0.0.1:6443', caData = 'PEM') =>
    ensureAdminAccess({ kubeconfig, tokenFile, server, caData, clock });
  const token = async () => (await tokenInKubeconfig(kubeconfig, 'admin')) ?? '';
  /** Who a server that starts now takes the token for. */
  const userOf = (text: string) =>
    new TokenAuthenticator({ path: tokenFile, clock, onProblem: () => undefined }).userOf(text);
  const config = async () => load(await readFile(kubeconfig, 'utf8')) as Config;
  return { kubeconfig, tokenFile, clock, start, token, userOf, config };
}

test('the first start writes a kubeconfig whose token is the admin, and keeps the hash only', async () => {
  const { kubeconfig, tokenFile, start, token, userOf, config } = await setUp();
  await start();
  expect(await config()).toEqual({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'sluice', cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': 'UEVN' } }],
    users: [{ name: 'sluice-admin', user: { token: await token() } }],
    contexts: [{ name: 'sluice', context: { cluster: 'sluice', user: 'sluice-admin' } }],
    'current-context': 'sluice',
  });
  expect(await userOf(await token())).toEqual({ name: 'admin', groups: ['system:masters'] });
  expect(await readFile(tokenFile, 'utf8')).not.toContain(await token());
  for (const path of [kubeconfig, tokenFile]) expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test('another port or authority is written down, the token stays', async () => {
  const { kubeconfig, start, token, config } = await setUp();
  await start();
  const first = await token();
  await chmod(kubeconfig, 0o644);
  await start('https://127.0.0.1:7000', 'OTHER');
  expect(await token()).toBe(first);
  expect((await config()).clusters).toMatchObject([{ cluster: { server: 'https://127.0.0.1:7000' } }]);
  expect((await stat(kubeconfig)).mode & 0o777).toBe(0o600);
});

test.each([
  ['is missing', (path: string) => rm(path)],
  ['is damaged', (path: string) => writeFile(path, '{ users: [')],
  ['is no kubeconfig', (path: string) => writeFile(path, 'users: 3')],
  [
    'holds an unknown token',
    (path: string) => writeFile(path, dump({ users: [{ name: 'sluice-admin', user: { token: 'guess' } }] })),
  ],
])('a kubeconfig that %s gets a new token, and the old one is forgotten', async (_name, damage) => {
  const { kubeconfig, tokenFile, clock, start, token, userOf } = await setUp();
  const anna = await addToken(tokenFile, { user: 'anna' }, clock);
  await start();
  const first = await token();
  await damage(kubeconfig);
  await start();
  const second = await token();
  expect(second).not.toBe(first);
  expect(await userOf(first)).toBeUndefined();
  expect(await userOf(second)).toMatchObject({ name: 'admin' });
  expect(await userOf(anna)).toMatchObject({ name: 'anna' });
});

test('a kubeconfig with the token of another user does not make that user an administrator', async () => {
  const { kubeconfig, tokenFile, clock, start, token, userOf } = await setUp();
  const anna = await addToken(tokenFile, { user: 'anna' }, clock);
  await writeFile(kubeconfig, dump({ users: [{ name: 'sluice-admin', user: { token: anna } }] }));
  await start();
  expect(await token()).not.toBe(anna);
  expect(await userOf(anna)).toMatchObject({ name: 'anna', groups: [] });
});

test('what people put into the kubeconfig stays', async () => {
  const { kubeconfig, start, config } = await setUp();
  await start();
  const old = await config();
  const changed = {
    ...old,
    preferences: { colors: true },
    clusters: [...old.clusters, { name: 'prod', cluster: { server: 'https://prod' } }],
    contexts: [
      { name: 'sluice', context: { cluster: 'sluice', user: 'sluice-admin', namespace: 'team-a' } },
      { name: 'prod', context: { cluster: 'prod', user: 'me' } },
    ],
    'current-context': 'prod',
  };
  await writeFile(kubeconfig, dump(changed));
  await start('https://127.0.0.1:7000');
  const now = await config();
  expect(now['current-context']).toBe('prod');
  expect(now.preferences).toEqual({ colors: true });
  expect(now.contexts).toContainEqual(changed.contexts[0]);
  expect(now.contexts).toContainEqual(changed.contexts[1]);
  expect(now.clusters).toContainEqual({ name: 'prod', cluster: { server: 'https://prod' } });
});

test('a token that a kill left without a kubeconfig is forgotten at the next start', async () => {
  const { tokenFile, clock, start, token } = await setUp();
  const lost = await addToken(tokenFile, { user: 'admin', groups: ['system:masters'] }, clock);
  await start();
  const text = await readFile(tokenFile, 'utf8');
  expect(text).not.toContain(hashOfToken(lost));
  expect(text).toContain(hashOfToken(await token()));
});
