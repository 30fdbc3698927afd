import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { HostRules } from '../../src/git/network/host-rules.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { eventually } from '../../test/support/api/eventually.ts';
import { postToHost } from '../notification/post-to-host.ts';
import { startReceiver } from '../notification/testing.ts';
import { objectBench } from '../testing-objects.ts';
import { ChangedFolders } from './changed-folders.ts';
import { syncTriggerController } from './sync-trigger-controller.ts';

const SECRET = 's3cret-of-the-hook';
const [FIRST, SECOND] = ['a'.repeat(40), 'b'.repeat(40)];

function bench() {
  const objects = objectBench();
  const { client, clock, manager } = objects;
  const post = postToHost({ hosts: new HostRules(['127.0.0.1']) });
  const openCluster = () => Promise.reject(new Error('there is no cluster'));
  const changedFolders = new ChangedFolders();
  const timing = { timeoutMs: 300, random: () => 0 };
  manager.addController(syncTriggerController({ client, clock, post, changedFolders, openCluster, ...timing }));
  return {
    ...objects,
    async target(name: string, trigger: object) {
      await client.create(secretKind, { metadata: { name: `${name}-hook` }, stringData: { token: SECRET } });
      const git = { repo: 'git@git.example.com:team/deploy.git', branch: 'prod' };
      const engine = { type: 'ArgoCD' as const, trigger: trigger as { type: 'Webhook' } };
      await client.create(deliveryTargetKind, { metadata: { name }, spec: { selector: {}, git, engine } });
    },
    async delivered(name: string, lastCommit: string) {
      const target = await client.get(deliveryTargetKind, { name });
      await client.updateStatus(deliveryTargetKind, { ...target, status: { ...target.status, lastCommit } });
    },
  };
}

const sign = (body: string) => `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
const when = <Value>(read: () => Value | Promise<Value>, holds: (value: Value) => boolean) =>
  eventually(async () => read(), holds);

test('each new commit is announced once, with the signatures of GitHub and of a Receiver of Flux', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.target('east', { type: 'Webhook', url: `${receiver.url}/api/webhook`, secretRef: { name: 'east-hook' } });
  await at.manager.start();
  await at.delivered('east', FIRST);
  await when(
    () => receiver.received.length,
    (count) => count === 1,
  );
  await at.delivered('east', FIRST);
  await at.delivered('east', SECOND);
  await when(
    () => receiver.received.length,
    (count) => count === 2,
  );
  await at.manager.idle();
  expect(receiver.received).toHaveLength(2);
  for (const { path, headers, body } of receiver.received) {
    expect([path, headers['x-github-event']]).toEqual(['/api/webhook', 'push']);
    expect([headers['x-hub-signature-256'], headers['x-signature']]).toEqual([sign(body), sign(body)]);
  }
  expect(JSON.parse(receiver.received[1]?.body ?? '')).toMatchObject({
    ...{ ref: 'refs/heads/prod', before: FIRST, after: SECOND },
    repository: { html_url: 'https://git.example.com/team/deploy', default_branch: 'prod' },
  });
  expect(at.errors).toEqual([]);
});

test('a failure is reported on the target without its secret, tried again, and delays no other target', async () => {
  let isBroken = true;
  await using receiver = await startReceiver((_request, response) => {
    response.statusCode = isBroken ? 500 : 200;
    isBroken = false;
    response.end('secret details');
  });
  await using hanging = await startReceiver(() => undefined);
  await using at = bench();
  await at.target('slow', { type: 'Webhook', url: `${hanging.url}/hook/0123456789` });
  await at.target('east', { type: 'Webhook', url: receiver.url, secretRef: { name: 'east-hook' } });
  await at.manager.start();
  await at.delivered('slow', FIRST);
  await at.delivered('east', FIRST);
  await when(
    () => receiver.received.length,
    (count) => count === 2,
  );
  const [event, ...others] = await when(
    () => at.events('east'),
    ({ length }) => length > 0,
  );
  expect(others).toEqual([]);
  expect(event).toMatch(/^SyncNotTriggered: cannot start a sync of commit a{12}: .* returned 500; it is tried again/);
  expect(event).not.toContain('secret details');
  const [slow] = await when(
    () => at.events('slow'),
    ({ length }) => length > 0,
  );
  expect(slow).toContain('it did not respond in time');
  expect(slow).not.toContain('0123456789');
});

test('commits from before the start are not announced, and those of other targets never', async () => {
  await using receiver = await startReceiver();
  await using at = bench();
  await at.target('east', { type: 'Webhook', url: receiver.url });
  await at.delivered('east', FIRST);
  await at.manager.start();
  await at.manager.idle();
  expect(receiver.received).toEqual([]);
  await at.delivered('east', SECOND);
  const [request] = await when(
    () => receiver.received,
    ({ length }) => length === 1,
  );
  expect(request?.headers).not.toHaveProperty('x-signature');
});

test('folders of several commits are refreshed together; too many, or unknown ones, stand for all', () => {
  const [changed, east] = [new ChangedFolders(), { namespace: 'default', name: 'east' }];
  changed.add(east, ['a', 'b']);
  changed.add(east, ['b', 'c']);
  changed.add({ namespace: 'default', name: 'west' }, ['x']);
  expect(changed.take(east)).toEqual(new Set(['a', 'b', 'c']));
  expect(changed.take(east)).toBeUndefined();
  const many = Array.from({ length: 1001 }, (_, index) => `${index}`);
  for (const folders of [many, undefined]) {
    changed.add(east, folders);
    changed.add(east, ['a']);
    expect(changed.take(east)).toBeUndefined();
  }
});
