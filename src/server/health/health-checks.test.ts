import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../testing.ts';
import { HealthChecks, Heartbeat } from './health-checks.ts';

let api: TestServer;
let health: HealthChecks;
let now = 0;
const worker = new Heartbeat(() => now, 1000);

beforeEach(async () => {
  now = 0;
  worker.beat();
  health = new HealthChecks();
  health.add('livez', 'worker', worker.check);
  api = await startTestServer({ publicPaths: [health.publicPaths], paths: [health.detailPaths] });
});
afterEach(() => api.stop());

const text = async (path: string, init?: RequestInit) => {
  const response = await api.fetch(path, init);
  return `${response.status} ${await response.text()}`;
};

test('every client can read whether the server is healthy, and no details', async () => {
  for (const path of ['/livez', '/readyz', '/healthz']) {
    const response = await fetch(`${api.listener.url}${path}`);
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    expect((await fetch(`${api.listener.url}${path}?verbose`)).status).toBe(401);
  }
  expect((await fetch(`${api.listener.url}/livez/worker`)).status).toBe(401);
  expect((await api.fetch('/livez', { method: 'POST' })).status).toBe(405);
});

test('a worker that is silent for too long fails both probes; one that is not ready fails one', async () => {
  const remove = health.add('readyz', 'index', () => Promise.reject(new Error('reading refs')));
  expect(await text('/livez')).toBe('200 ok');
  expect(await text('/readyz')).toBe('500 failed: index\n');
  expect(await text('/readyz?verbose')).toBe('500 [+]worker ok\n[-]index failed: reading refs\nreadyz check failed\n');
  expect(await text('/readyz?exclude=index')).toBe('200 [+]worker ok\nreadyz check passed\n');
  remove();
  now = 1001;
  expect(await text('/livez')).toBe('500 failed: worker\n');
  expect(await text('/readyz/worker')).toBe('500 [-]worker failed: no sign of life for 1 s\nreadyz check failed\n');
  expect(await text('/livez/nothing')).toMatch(/^404 /);
  worker.beat();
  expect(await text('/livez')).toBe('200 ok');
});

test('the text that a check returns is in the details', async () => {
  health.add('readyz', 'warm', () => 'standby of sluice-1');
  expect(await text('/readyz?verbose')).toBe(
    '200 [+]worker ok\n[+]warm ok: standby of sluice-1\nreadyz check passed\n',
  );
});
