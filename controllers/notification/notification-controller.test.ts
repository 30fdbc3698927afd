// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { eventually } from '../../test/support/api/eventually.ts';
import { notificationController } from './notification-controller.ts';
import { postToHost } from './post-to-host.ts';
import { startReceiver } from './testing.ts';
import { bench } from './testing-bench.ts';

const HOSTS = { hosts: new HostRules(['127.0.0.1']) };
const SECRET = 's3cret-of-the-hook';

const when = <Value>(read: () => Value | Promise<Value>, holds: (value: Value) => boolean) =>
  eventually(async () => read(), holds);

test('an event is posted once, signed, and counted', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.secret('hook', { token: SECRET });
  await at.notify('all', { webhook: { url: `${receiver.url}/in?x=1`, secretRef: { name: 'hook' } } });
  await at.manager.start();
  await at.record('Delivered', 'commit 12ab with 2 packages');
  const [request] = await when(
    () => receiver.received,
    ({ length }) => length === 1,
  );
  expect(request).toMatchObject({ method: 'POST', path: '/in?x=1' });
  const { headers = {}, body = '' } = request ?? {};
  const sign = (text: string) => `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`;
  expect(headers['x-hub-signature-256']).toBe(sign(body));
  expect(headers['x-sluice-signature']).toBe(sign(`${headers['x-sluice-timestamp']}.${body}`));
  expect(JSON.parse(body)).toMatchObject({
    ...{ type: 'Normal', reason: 'Delivered', message: 'commit 12ab with 2 packages', source: 'controller:delivery' },
    ...{ object: { kind: 'DeliveryTarget', namespace: 'default', name: 'east' }, id: headers['x-sluice-delivery'] },
  });
  const status = await when(
    () => at.status('all'),
    (one) => one?.sent === 1,
  );
  expect(status?.conditions).toMatchObject([{ type: 'Ready', status: 'True' }]);
  expect(JSON.stringify(status)).not.toContain(SECRET);
  expect(at.errors).toEqual([]);
});

test('a template decides the body, which is signed and contains no secret', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.secret('hook', { token: SECRET });
  const template = {
    text: '${event.reason} of ${object.name}',
    blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '*${object.name}*: ${event.message}' } }],
  };
  const webhook = { url: receiver.url, format: 'Slack', secretRef: { name: 'hook' }, template };
  await at.notify('all', { webhook });
  await at.manager.start();
  await at.record('Degraded', '"}], <!here> password=hunter22, ${secret.token}', { type: 'Warning' });
  const [request] = await when(
    () => receiver.received,
    ({ length }) => length === 1,
  );
  const { headers = {}, body = '' } = request ?? {};
  expect(JSON.parse(body)).toEqual({
    text: 'Degraded of east',
    blocks: [
      {
        type: 'section',
        text: { type: 'mrkdwn', text: '*east*: "}], &lt;!here&gt; password=[removed], ${secret.token}' },
      },
    ],
  });
  expect(headers['x-hub-signature-256']).toBe(`sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`);
  expect(body).not.toContain(SECRET);
  await expect(
    at.notify('wrong', { webhook: { url: receiver.url, template: { text: '${secretRef.token}' } } }),
  ).rejects.toThrow('spec.webhook.template.text: ');
});

test('only selected events of its namespace are sent, and none about notifications', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  const git = { repo: 'https://git.example.com/a.git' };
  await at.client.create(deliveryTargetKind, {
    metadata: { name: 'west', labels: { tier: 'prod' } },
    spec: { selector: {}, git },
  });
  await at.notify('some', {
    events: [
      { kinds: ['DeliveryTarget'], reasons: ['Roll*'], types: ['Warning'] },
      { selector: { matchLabels: { tier: 'prod' } } },
    ],
    webhook: { url: receiver.url },
  });
  await at.manager.start();
  await at.record('RolledBack', 'not this type');
  await at.record('RolledBack', 'not this kind', { kind: 'Repository', type: 'Warning' });
  await at.record('RolledBack', 'not here', { namespace: 'other', type: 'Warning' });
  await at.record('Failing', 'not a notification', { kind: 'Notification', name: 'west' });
  await at.record('RolledBack', 'one', { type: 'Warning' });
  await at.record('Delivered', 'two', { name: 'west' });
  await when(
    () => receiver.received,
    ({ length }) => length === 2,
  );
  await at.manager.idle();
  expect(receiver.received.map(({ body }) => JSON.parse(body).message)).toEqual(['one', 'two']);
});

test('events before the creation are not sent, and after a restart none is sent twice or lost', async () => {
  await using receiver = await startReceiver();
  const first = bench();
  await first.client.create(eventKind, {
    metadata: { name: 'old', namespace: 'default' },
    involvedObject: { apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', namespace: 'default', name: 'east' },
    ...{ reason: 'Old', lastTimestamp: new Date(Date.now() - 60_000).toISOString() },
  });
  await first.notify('all', { webhook: { url: receiver.url } });
  await first.manager.start();
  await first.record('One');
  await when(
    () => first.status('all'),
    (status) => status?.sent === 1,
  );
  await first.manager.stop(0);
  await first.record('Two');
  const { Manager } = await import('../../src/controller/manager.ts');
  const second = new Manager({ client: first.client, clock: first.clock });
  second.addController(notificationController({ client: first.client, clock: first.clock, post: postToHost(HOSTS) }));
  await second.start();
  await when(
    () => first.status('all'),
    (status) => status?.sent === 2,
  );
  await second.idle();
  await second.stop(0);
  expect(receiver.received.map(({ body }) => JSON.parse(body).reason)).toEqual(['One', 'Two']);
});

test('another occurrence of the same event is another message', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.notify('all', { webhook: { url: receiver.url } });
  await at.manager.start();
  await at.record('Degraded');
  await when(
    () => receiver.received.length,
    (count) => count === 1,
  );
  await at.client.patch(eventKind, { name: 'e1' }, { count: 2, lastTimestamp: new Date().toISOString() });
  await when(
    () => receiver.received.length,
    (count) => count === 2,
  );
  expect(new Set(receiver.received.map(({ headers }) => headers['x-sluice-delivery'])).size).toBe(2);
});

test('a receiver that hangs delays no other, and is reported', async () => {
  await using hanging = await startReceiver(() => undefined);
  await using receiver = await startReceiver();
  await using at = bench({ timeoutMs: 300 });
  await at.notify('slow', { webhook: { url: `${hanging.url}/path-that-is-a-secret` } });
  await at.notify('fast', { webhook: { url: receiver.url } });
  await at.manager.start();
  for (const reason of ['One', 'Two', 'Three']) await at.record(reason);
  await when(
    () => at.status('fast'),
    (status) => status?.sent === 3,
  );
  const status = await when(
    () => at.status('slow'),
    (one) => one?.lastError != null,
  );
  expect(status?.conditions).toMatchObject([{ status: 'False', reason: 'Failing' }]);
  expect(status?.lastError?.message).toMatch(/cannot send to http:\/\/127\.0\.0\.1:\d+: it did not respond in time/);
  expect(JSON.stringify([status, await at.events('slow')])).not.toContain('path-that-is-a-secret');
  expect(await at.events('slow')).toEqual([expect.stringMatching(/^Failing: One of DeliveryTarget east: cannot send/)]);
});

test('an error of the receiver is tried again, in order, until it accepts', async () => {
  let failures = 1;
  await using receiver = await startReceiver((_request, response) => {
    response.statusCode = failures-- > 0 ? 500 : 202;
    response.end('secret details');
  });
  await using at = bench({ random: () => 0 });
  await at.notify('all', { webhook: { url: receiver.url } });
  await at.manager.start();
  await at.record('One');
  await at.record('Two');
  const status = await when(
    () => at.status('all'),
    (one) => one?.sent === 2,
  );
  expect(receiver.received.map(({ body }) => JSON.parse(body).reason)).toEqual(['One', 'One', 'Two']);
  expect(status?.conditions).toMatchObject([{ status: 'True' }]);
  expect(JSON.stringify(status)).not.toContain('secret details');
});

test('a message that the receiver finds invalid is given up, and the next one is sent', async () => {
  await using receiver = await startReceiver((request, response) => {
    response.statusCode = request.body.includes('"One"') ? 400 : 200;
    response.end();
  });
  await using at = bench();
  await at.notify('all', { webhook: { url: receiver.url } });
  await at.manager.start();
  await at.record('One');
  await at.record('Two');
  await when(
    () => at.status('all'),
    (status) => status?.sent === 1 && status.failed === 1,
  );
  expect(await at.events('all')).toEqual([expect.stringMatching(/^NotSent: One of .* returned 400/)]);
});

test('a redirect is not followed, and a long reply is cut off', async () => {
  await using inner = await startReceiver();
  await using redirecting = await startReceiver((_request, response) =>
    response.writeHead(307, { location: `${inner.url}/stolen` }).end(),
  );
  await using endless = await startReceiver((_request, response) => {
    const write = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  });
  await using at = bench();
  await at.notify('away', { webhook: { url: redirecting.url } });
  await at.notify('long', { webhook: { url: endless.url } });
  await at.manager.start();
  await at.record('One');
  await when(
    () => at.status('long'),
    (status) => status?.sent === 1,
  );
  const status = await when(
    () => at.status('away'),
    (one) => one?.lastError != null,
  );
  expect(status?.lastError?.message).toContain('returned 307, a redirect, which is not followed');
  expect(inner.received).toEqual([]);
});

test('local addresses are refused unless the operator permits them; Secrets are named, not shown', async () => {
  await using receiver = await startReceiver();
  await using at = bench({ post: postToHost({ hosts: new HostRules() }) });
  await at.secret('address', { url: `${receiver.url}/services/T0/B0/token` });
  await at.notify('direct', { webhook: { url: `${receiver.url}/services/T0/B0/token` } });
  await at.notify('local', { webhook: { urlSecretRef: { name: 'address' }, format: 'Slack' } });
  await at.notify('missing', { webhook: { urlSecretRef: { name: 'nothing' } } });
  await at.manager.start();
  await at.record('One');
  const local = await when(
    () => at.status('local'),
    (one) => one?.lastError != null,
  );
  expect(local?.lastError?.message).toContain('is on the machine of the server');
  const direct = await when(
    () => at.status('direct'),
    (one) => one?.lastError != null,
  );
  expect(direct?.lastError?.message).toContain('its host is at a local address');
  expect(JSON.stringify([local, direct])).not.toContain('/services/T0');
  const missing = await when(
    () => at.status('missing'),
    (one) => one?.lastError != null,
  );
  expect(missing?.lastError?.message).toContain(
    'Secret default/nothing, which spec.webhook.urlSecretRef refers to, does not exist; create it with the key url',
  );
  expect(receiver.received).toEqual([]);
});

test('messages beyond the rate wait, and too many waiting events are dropped', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.notify('few', { webhook: { url: receiver.url }, maxPerMinute: 2 });
  for (let index = 0; index < 210; index += 1) await at.record('Many', String(index));
  await at.manager.start();
  await when(
    () => at.status('few'),
    (status) => status?.sent === 2,
  );
  const status = await at.status('few');
  expect(status?.dropped).toBeGreaterThanOrEqual(10);
  expect(receiver.received).toHaveLength(2);
  expect(at.manager.waiting()).toMatchObject([{ controller: 'notification', reason: 'spec.maxPerMinute' }]);
});

test('a suspended notification sends nothing, and nothing of that time later', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.notify('all', { webhook: { url: receiver.url }, suspend: true });
  await at.manager.start();
  await at.record('One');
  await at.manager.idle();
  expect((await at.status('all'))?.conditions).toMatchObject([{ status: 'False', reason: 'Suspended' }]);
  await at.client.patch(notificationKind, { name: 'all' }, { spec: { suspend: null } });
  await when(
    () => at.status('all'),
    (status) => status?.conditions?.[0]?.status === 'True',
  );
  await at.record('Two');
  await when(
    () => receiver.received.length,
    (count) => count === 1,
  );
  expect(JSON.parse(receiver.received[0]?.body ?? '').reason).toBe('Two');
});
