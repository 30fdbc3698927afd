import { expect, test } from 'vitest';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { eventually } from '../../test/support/api/eventually.ts';
import { startReceiver } from './testing.ts';
import { bench } from './testing-bench.ts';

const when = <Value>(read: () => Value | Promise<Value>, holds: (value: Value) => boolean) =>
  eventually(async () => read(), holds);

test('the status of the delivered commit is set on the Git host, and the token goes to no other host', async () => {
  await using host = await startReceiver((_request, response) => response.writeHead(201).end('{}'));
  await using other = await startReceiver();
  await using at = bench();
  await at.secret('host', { token: 'the-token' });
  const lastCommit = 'a'.repeat(40);
  // The name is another host than the address.
  const repos = {
    east: `${host.url}/team/deploy.git`,
    evil: `${other.url.replace('127.0.0.1', 'localhost')}/team/deploy.git`,
  };
  for (const [name, repo] of Object.entries(repos)) {
    const target = await at.client.create(deliveryTargetKind, {
      metadata: { name },
      spec: { selector: {}, git: { repo } },
    });
    await at.client.updateStatus(deliveryTargetKind, { ...target, status: { lastCommit } });
  }
  const api = `${host.url}/api/v1`;
  await at.notify('host', { commitStatus: { secretRef: { name: 'host' }, api } });
  await at.notify('github', { commitStatus: { secretRef: { name: 'host' } } });
  await at.manager.start();
  await at.record('Delivered', '', { name: 'evil' });
  await at.record('Degraded', 'Deployment upf is not ready 🎄', { type: 'Warning' });
  const status = await when(
    () => at.status('host'),
    (one) => one?.sent === 1,
  );
  await at.manager.idle();
  expect(host.received).toMatchObject([{ method: 'POST', path: `/api/v1/repos/team/deploy/statuses/${lastCommit}` }]);
  const [request] = host.received;
  expect(request?.headers.authorization).toBe('Bearer the-token');
  expect(JSON.parse(request?.body ?? '')).toEqual({
    state: 'failure',
    context: 'sluice/deliverytarget/east',
    // GitHub refuses characters of four bytes in a status.
    description: 'Degraded: Deployment upf is not ready �',
  });
  expect(JSON.stringify(status)).not.toContain('the-token');
  expect(other.received).toEqual([]);
  expect((await at.status('github'))?.lastError).toBeUndefined();
});

test('a missing Secret is reported before an event needs it, until it is there', async () => {
  await using at = bench();
  const webhook = { urlSecretRef: { name: 'slack' }, format: 'Slack' };
  await at.notify('all', { webhook });
  await at.manager.start();
  const missing = await when(
    () => at.status('all'),
    (one) => one?.conditions !== undefined,
  );
  expect(missing?.conditions).toMatchObject([
    {
      ...{ type: 'Ready', status: 'False', reason: 'SecretUnusable' },
      message:
        'Secret default/slack, which spec.webhook.urlSecretRef refers to, does not exist; create it with the key url',
    },
  ]);
  await at.secret('slack', { url: 'https://hooks.example' });
  const now = await at.client.get(notificationKind, { name: 'all' });
  await at.client.update(notificationKind, { ...now, spec: { ...now.spec, maxPerMinute: 20 } });
  await when(
    () => at.status('all'),
    (one) => one?.conditions?.[0]?.status === 'True',
  );
});

test('an unknown kind of objects is refused', async () => {
  await using at = bench();
  const refused = at.notify('all', { events: [{ kinds: ['DeliveryTargets'] }], webhook: { url: 'https://a.example' } });
  await expect(refused).rejects.toThrow(/kinds/);
});

test('receivers that do not respond leave workers to the Notifications of other namespaces', async () => {
  await using slow = await startReceiver(() => undefined);
  await using receiver = await startReceiver();
  await using at = bench({ timeoutMs: 60_000 });
  for (let count = 0; count < 300; count += 1)
    await at.client.create(notificationKind, {
      metadata: { namespace: 'team', name: `n${count}` },
      spec: { events: [{}], webhook: { url: slow.url } },
    });
  await at.notify('all', { webhook: { url: receiver.url } });
  await at.manager.start();
  await at.record('Delivered', '', { namespace: 'team' });
  await when(
    () => slow.received.length,
    (length) => length === 16,
  );
  await at.record('Delivered');
  await when(
    () => receiver.received.length,
    (length) => length === 1,
  );
  expect(slow.received.length).toBe(16);
  await at.manager.stop(0);
});
