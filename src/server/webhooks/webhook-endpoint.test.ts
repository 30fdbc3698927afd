import { createHmac } from 'node:crypto';
import { type ClientRequest, request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { startTestServer, type TestServer } from '../testing.ts';
import { WebhookEndpoint } from './webhook-endpoint.ts';
import { WEBHOOK_SECRET_ANNOTATION } from './webhook-secrets.ts';

const SECRET = '0123456789abcdef';

let server: TestServer;
let hasReported: string[];
let unreadable: string[];
let ahead: number;
beforeEach(async () => {
  hasReported = [];
  unreadable = [];
  ahead = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + ahead };
  let endpoint: WebhookEndpoint | undefined;
  server = await startTestServer({ webhooks: async (asked) => endpoint?.handle(asked) }, [
    repositoryKind,
    secretKind,
  ] as unknown as readonly Kind[]);
  const client = new RegistryClient(server.registry, { name: 'admin' }, 'api');
  endpoint = new WebhookEndpoint({
    ...{ client, clock },
    onMessage: ({ namespace, name }, scope) => hasReported.push(`${namespace}/${name} ${scope}`),
    onUnreadablePush: async ({ namespace, name }, maxBytes) => void unreadable.push(`${namespace}/${name} ${maxBytes}`),
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

const url = (name: string) => `${server.listener.url}/webhooks/git/default/${name}`;

function post(name: string, body: string, headers: Record<string, string>): Promise<Response> {
  return fetch(url(name), { method: 'POST', body, headers });
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
  expect(await send(push('refs/heads/other'), { 'X-GitHub-Delivery': '1' })).toBe('accepted\n');
  await send(push('refs/tags/app/v1'));
  await send('payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D');
  await send('{"zen":"…"}', { 'X-GitHub-Event': 'ping' });
  await send(`{"__proto__":{"ref":"refs/heads/main"}}`);
  await send('['.repeat(200_000));
  expect(hasReported).toEqual([
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
  expect(hasReported).toEqual([]);
  const odd = ['%61pps', 'apps/x', 'apps/', '__proto__', 'A'];
  for (const name of odd) expect((await post(name, 'x', right)).status).toBe(401);
  expect((await fetch(`${server.listener.url}/webhooks/git/default/apps`)).status).toBe(405);
  expect((await fetch(`${server.listener.url}/webhooks/git/default/unknown`)).status).toBe(405);
});

test('a genuine message is accepted while its address sends many that are not', async () => {
  const wrong = () => post('apps', 'x', { 'X-Gitlab-Token': 'wrong' }).then(({ status }) => status);
  for (let round = 0; round < 3; round += 1) {
    const statuses = await Promise.all(Array.from({ length: 100 }, wrong));
    expect(new Set(statuses)).toEqual(new Set([401]));
  }
  expect((await post('apps', 'x', signed('x'))).status).toBe(202);
});

test('a large body is verified and not kept; above 25 MiB it is refused', async () => {
  const large = JSON.stringify({ ref: 'refs/heads/main', filler: 'x'.repeat(3 * 1024 * 1024) });
  expect((await post('apps', large, signed(large))).status).toBe(202);
  expect((await post('apps', `${large} `, signed(large))).status).toBe(401);
  expect(hasReported).toEqual(['default/apps everything']);
  expect(await refusedLength('apps')).toBe(413);
  expect(await refusedLength('unknown')).toBe(413);
});

test('slow senders that reconnect do not block a genuine message', async () => {
  const slow = new Set<ClientRequest>();
  /** Connects a sender that leaves its body unfinished; the server has accepted it once it says to continue. */
  const connectSlow = () =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'content-length': 1000, expect: '100-continue' };
      const sent = request(url('apps'), { method: 'POST', headers, agent: false });
      slow.add(sent);
      sent.on('continue', () => {
        sent.write('x');
        resolve();
      });
      sent.on('response', ({ statusCode }) => reject(new Error(`status ${statusCode}`)));
      sent.on('error', reject);
      sent.flushHeaders();
    });
  await Promise.all(Array.from({ length: 150 }, connectSlow));
  for (let round = 0; round < 10; round += 1) {
    for (const sent of [...slow].slice(0, 10)) {
      slow.delete(sent);
      sent.destroy();
    }
    const again = Promise.all(Array.from({ length: 10 }, connectSlow));
    expect((await post('apps', `${round}`, signed(`${round}`))).status).toBe(202);
    await again;
  }
  expect(hasReported).toHaveLength(10);
  for (const sent of slow) sent.destroy();
});

test('a captured message has no effect under another delivery, event or kind of signature', async () => {
  const body = JSON.stringify({ ref: 'refs/heads/main' });
  const hex = createHmac('sha256', SECRET).update(body).digest('hex');
  const hub = { 'X-Hub-Signature-256': `sha256=${hex}` };
  const send = (headers: Record<string, string>) => post('apps', body, headers).then((answer) => answer.text());
  expect(await send({ ...hub, 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': '1' })).toBe('accepted\n');
  for (const headers of [
    { ...hub, 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': '2' },
    { ...hub, 'X-GitHub-Event': 'create', 'webhook-id': '2', 'webhook-timestamp': '2' },
    { ...hub, 'X-Sluice-Timestamp': '2', 'Idempotency-Key': '2', 'X-Gitlab-Event-UUID': '2' },
    { 'X-Gitea-Signature': hex, 'X-Gitea-Event': 'push', 'X-Gitea-Delivery': '2' },
  ])
    expect(await send(headers)).toBe('seen before\n');
  expect(hasReported).toEqual(['default/apps branches']);
});

test('signed times, and the ids beside a token, distinguish messages with the same content', async () => {
  const sluice = (time: number) => {
    const hex = createHmac('sha256', SECRET).update(`${time}.x`).digest('hex');
    return { 'X-Sluice-Timestamp': `${time}`, 'X-Sluice-Signature': `sha256=${hex}` };
  };
  const standard = (id: string, time: number) => {
    const digest = createHmac('sha256', SECRET).update(`${id}.${time}.x`).digest('base64');
    return { 'webhook-id': id, 'webhook-timestamp': `${time}`, 'webhook-signature': `v1,${digest}` };
  };
  const token = (id: string) => ({ 'X-Gitlab-Token': SECRET, 'X-Gitlab-Event-UUID': id });
  const now = Math.floor(systemClock.now() / 1000);
  for (const headers of [
    ...[sluice(now), sluice(now - 1), standard('1', now), standard('2', now), standard('2', now - 1)],
    ...[token('1'), token('2')],
  ])
    for (const expected of ['accepted\n', 'seen before\n'])
      expect(await (await post('apps', 'x', headers)).text()).toBe(expected);
});

test('a push whose message is too long to keep is reported, for its pusher is lost', async () => {
  const filler = 'x'.repeat(1024 * 1024);
  await post('apps', filler, { ...signed(filler, 'wrong'), 'X-GitHub-Event': 'push' });
  await post('apps', `${filler}1`, { ...signed(`${filler}1`), 'X-GitHub-Event': 'create' });
  await post('apps', filler.slice(1), { ...signed(filler.slice(1)), 'X-GitHub-Event': 'push' });
  expect(unreadable).toEqual([]);
  await post('apps', `${filler}2`, { ...signed(`${filler}2`), 'X-GitHub-Event': 'push' });
  expect(unreadable).toEqual(['default/apps 1048576']);
});

/** The status for a body that is announced as too long; nothing of it is sent. */
function refusedLength(name: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url(name), {
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
