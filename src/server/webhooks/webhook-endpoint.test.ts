import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../foundation/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { startTestServer, type TestServer } from '../testing.ts';
import { WebhookEndpoint } from './webhook-endpoint.ts';
import { WEBHOOK_SECRET_ANNOTATION } from './webhook-secrets.ts';

const SECRET = '0123456789abcdef';

let server: TestServer;
let heard: string[];
let ahead: number;
beforeEach(async () => {
  heard = [];
  ahead = 0;
  const clock: Clock = { now: () => systemClock.now() + ahead, schedule: systemClock.schedule };
  let endpoint: WebhookEndpoint | undefined;
  server = await startTestServer({ webhooks: async (asked) => endpoint?.handle(asked) }, [
    repositoryKind,
    secretKind,
  ] as unknown as readonly Kind[]);
  const client = new RegistryClient(server.registry, { name: 'admin' }, 'api');
  endpoint = new WebhookEndpoint({
    ...{ client, clock },
    onMessage: ({ namespace, name }, scope) => heard.push(`${namespace}/${name} ${scope}`),
  });
  const repository = (name: string, secret?: string) =>
    client.create(repositoryKind, {
      metadata: {
        name,
        ...(secret === undefined ? {} : { annotations: { [WEBHOOK_SECRET_ANNOTATION]: secret } }),
      },
      spec: { git: { repo: `https://git.example.com/${name}.git` } },
    });
  await repository('apps', 'hook');
  await repository('silent');
  await repository('broken', 'missing');
  await repository('empty', 'nothing');
  await repository('unnamed', '');
  await client.create(secretKind, {
    metadata: { name: 'hook' },
    stringData: { token: `${SECRET}\nnext one\ngrüße von drüben\n` },
  });
  await client.create(secretKind, { metadata: { name: 'silent' }, stringData: { token: SECRET } });
  await client.create(secretKind, { metadata: { name: 'nothing' }, stringData: { token: '\n \n\t\n' } });
  await client.create(secretKind, { metadata: { name: 'unnamed' }, stringData: { token: SECRET } });
});
afterEach(() => server.stop());

const signed = (body: string, secret = SECRET) => ({
  'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

function post(name: string, body: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${server.listener.url}/webhooks/git/default/${name}`, { method: 'POST', body, headers });
}

async function said(answer: Promise<Response>): Promise<string> {
  const { status, headers, ...rest } = await answer.then(async (given) => ({
    status: given.status,
    headers: [...given.headers.keys()].filter((name) => name !== 'content-length'),
    text: await given.text(),
  }));
  return JSON.stringify([status, headers, rest.text]);
}

test('a message names what to read, and a repeated message does nothing', async () => {
  const push = (ref: string) => JSON.stringify({ ref, after: 'x' });
  const send = (body: string, headers: Record<string, string> = {}) =>
    post('apps', body, { 'X-GitHub-Event': 'push', ...signed(body), ...headers }).then((answer) => answer.text());
  expect(await send(push('refs/heads/main'), { 'X-GitHub-Delivery': '1' })).toBe('accepted\n');
  expect(await send(push('refs/heads/main'), { 'X-GitHub-Delivery': '1' })).toBe('seen before\n');
  expect(await send(push('refs/heads/main'), { 'X-GitHub-Delivery': '2' })).toBe('accepted\n');
  await send(push('refs/tags/app/v1'));
  await send('payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D');
  await send('{"zen":"…"}', { 'X-GitHub-Event': 'ping' });
  await send(`{"__proto__":{"ref":"refs/heads/main"}}`);
  await send('['.repeat(200_000));
  expect(heard).toEqual([
    ...['default/apps branches', 'default/apps branches', 'default/apps everything', 'default/apps everything'],
    ...['default/apps undefined', 'default/apps everything', 'default/apps everything'],
  ]);
  ahead = 11 * 60_000;
  expect(await send(push('refs/heads/main'), { 'X-GitHub-Delivery': '1' })).toBe('accepted\n');
});

test('each line of the secret counts while it is renewed', async () => {
  expect((await post('apps', 'x', signed('x', 'next one'))).status).toBe(202);
  expect((await post('apps', 'x', { 'X-Gitlab-Token': 'next one' })).status).toBe(202);
  const sent = Buffer.from('grüße von drüben').toString('latin1');
  expect((await post('apps', 'x', { 'X-Gitlab-Token': sent })).status).toBe(202);
  expect((await post('apps', 'x', { 'X-Gitlab-Token': `${SECRET}\\nnext one` })).status).toBe(401);
});

test('no response reveals whether a repository exists and has a webhook', async () => {
  const right = signed('x');
  const answers = await Promise.all([
    said(post('apps', 'x', signed('x', 'wrong'))),
    said(post('apps', 'x', {})),
    said(post('apps', 'x', { 'X-Hub-Signature': 'sha1=00' })),
    ...['silent', 'broken', 'empty', 'unnamed', 'unknown'].map((name) => said(post(name, 'x', right))),
    ...['silent', 'broken', 'empty', 'unnamed', 'unknown'].map((name) =>
      said(post(name, 'x', { 'X-Gitlab-Token': '' })),
    ),
    said(post('empty', 'x', signed('x', ' '))),
  ]);
  expect(new Set(answers).size).toBe(1);
  expect(answers[0]).toContain('[401,');
  expect(heard).toEqual([]);
  const odd = ['%61pps', 'apps/x', 'apps/', '__proto__', 'A'];
  for (const name of odd) expect((await post(name, 'x', right)).status).toBe(401);
  expect((await fetch(`${server.listener.url}/webhooks/git/default/apps`)).status).toBe(405);
  expect((await fetch(`${server.listener.url}/webhooks/git/default/unknown`)).status).toBe(405);
});

test('a large body is verified and not kept; above 25 MiB it is refused', async () => {
  const large = JSON.stringify({ ref: 'refs/heads/main', filler: 'x'.repeat(3 * 1024 * 1024) });
  expect((await post('apps', large, signed(large))).status).toBe(202);
  expect((await post('apps', `${large} `, signed(large))).status).toBe(401);
  expect(heard).toEqual(['default/apps everything']);
  expect(await refusedLength('apps')).toBe(413);
  expect(await refusedLength('unknown')).toBe(413);
});

test('slow senders do not block other senders', async () => {
  const slow = Array.from({ length: 64 }, () =>
    request(`${server.listener.url}/webhooks/git/default/apps`, { method: 'POST', headers: { 'content-length': 9 } }),
  );
  let cutOff = 0;
  for (const sent of slow) {
    sent.on('error', () => {
      cutOff += 1;
    });
    sent.write('x');
  }
  await expect.poll(async () => (await post('apps', 'x', signed('x'))).status).toBe(429);
  ahead = 1000;
  expect((await post('apps', 'y', signed('y'))).status).toBe(202);
  await expect.poll(() => cutOff).toBe(1);
  for (const sent of slow) sent.destroy();
});

/** The status for a body that is announced as too long; nothing of it is sent. */
function refusedLength(name: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.listener.url}/webhooks/git/default/${name}`, {
      method: 'POST',
      headers: { 'content-length': 26 * 1024 * 1024 },
    });
    sent.on('response', (response) => {
      resolve(response.statusCode);
      sent.destroy();
    });
    sent.on('error', reject);
    sent.flushHeaders();
  });
}
