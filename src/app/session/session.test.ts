import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../resource/object/condition.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from './session.ts';

let cli: CliFixture;
let silent: Server;
let address: string;
beforeEach(async () => {
  cli = await cliFixture();
  silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  address = `http://127.0.0.1:${(silent.address() as { port: number }).port}/x.git`;
});
afterEach(async () => {
  silent.close();
  await cli[Symbol.asyncDispose]();
});

const session = (write = true) =>
  Session.open({
    folder: dataFolder(cli.data),
    actor: { name: 'anna' },
    remoteTimeoutMs: 300,
    write,
    network: DEFAULT_NETWORK,
  });

async function disposable(write?: boolean) {
  const opened = await session(write);
  return { session: opened, [Symbol.asyncDispose]: () => opened.close() };
}

test('a remote that does not answer delays neither the list of packages nor the status of a target', async () => {
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, 'packages.web.v1');
  const open = await session();
  try {
    await open.client.create(repositoryKind, { metadata: { name: 'silent' }, spec: { git: { repo: address } } });
    await open.client.create(deliveryTargetKind, {
      metadata: { name: 'far' },
      spec: { selector: {}, git: { repo: address.replace('x.git', 'target.git') } },
    });
    const failures = await open.repositories.openAll();
    expect(failures).toEqual([
      { namespace: 'default', repository: 'silent', error: expect.objectContaining({ code: 'Timeout' }) },
    ]);
    expect(open.store.list({ repository: 'packages' })).toHaveLength(2);
    const { delivery } = await open.readings.explain(open.context(), { namespace: 'default', name: 'packages.web.v1' });
    expect(delivery).toEqual([
      { target: 'far', state: 'Unknown', message: 'the target cannot be read: no answer within 0.3 s' },
    ]);
  } finally {
    await open.close();
  }
});

test('requests at the same time share the opening of a repository', async () => {
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  await using open = await disposable();
  const { client } = open.session;
  const key = { namespace: 'default', name: 'packages.web.v1' };
  const fieldSelector = 'spec.repository=packages';
  const [one, other, all, some] = await Promise.all([
    client.get(packageRevisionKind, key),
    client.get(packageRevisionKind, key),
    client.list(packageRevisionKind, { namespace: 'default' }),
    client.list(packageRevisionKind, { namespace: 'default', fieldSelector }),
  ]);
  expect([one.metadata.name, other.metadata.name]).toEqual([key.name, key.name]);
  expect([all.items.length, some.items.length]).toEqual([1, 1]);
});

test('a caller that stops waiting for a remote does not end the opening of another caller', async () => {
  await using open = await disposable();
  const { client, repositories } = open.session;
  await client.create(repositoryKind, { metadata: { name: 'silent' }, spec: { git: { repo: address } } });
  const [first, second] = [new AbortController(), new AbortController()];
  const one = repositories.open('default/silent', first.signal).catch((error: unknown) => error);
  const other = repositories.open('default/silent', second.signal).catch((error: unknown) => error);
  const next = once(silent, 'connection');
  first.abort();
  expect(await one).toBeInstanceOf(Error);
  // The other caller tries by itself.
  await next;
  second.abort();
  expect(await other).toBeInstanceOf(Error);
});

test('a watch of repositories reads them, and reports one that does not answer in the end', async () => {
  await using open = await disposable();
  const { client } = open.session;
  await client.create(repositoryKind, { metadata: { name: 'good' }, spec: { git: { repo: cli.bare('good.git') } } });
  await client.create(repositoryKind, { metadata: { name: 'silent' }, spec: { git: { repo: address } } });
  const listed = await client.list(repositoryKind);
  expect(listed.items.map(({ status }) => status)).toEqual([undefined, undefined]);
  const stop = new AbortController();
  // Under load the good one can be reported as slow first.
  const seen = new Map<string, string | undefined>();
  for await (const event of client.watch(repositoryKind, { resourceVersion: '0', signal: stop.signal })) {
    if (event.type === 'BOOKMARK') continue;
    const { metadata, status } = event.object;
    seen.set(metadata.name, findCondition(status?.conditions, 'Ready')?.message);
    if (seen.size === 2 && seen.get('good') === 'Repository Ready') stop.abort();
  }
  expect(seen.get('silent')).toContain('did not respond within 0.3 s');
  expect((await client.get(repositoryKind, { name: 'good' })).status?.packageCount).toBe(0);
});

test('a request to read a repository again is done, and not stored', async () => {
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await using open = await disposable(false);
  const { client, store } = open.session;
  const read = async () => {
    const { signal } = new AbortController();
    for await (const _event of client.watch(repositoryKind, { resourceVersion: '0', signal }));
    return (await client.get(repositoryKind, { name: 'packages' })).status?.observedRunOnceAt;
  };
  expect(await read()).toBeUndefined();
  const head = cli.git('packages.git', 'rev-parse', 'main');
  cli.git('packages.git', 'update-ref', 'refs/heads/drafts/web/v1', head);
  const runOnceAt = '2026-01-01T00:00:00Z';
  const requested = await client.patch(repositoryKind, { name: 'packages' }, { spec: { sync: { runOnceAt } } });
  expect([requested.status, requested.spec.sync]).toEqual([undefined, undefined]);
  expect(await read()).toBe(runOnceAt);
  expect(store.repository('packages').index.mainHead).toBe(head);
});

test('packages are not reached under the name of a second object, whose policies are others', async () => {
  const path = cli.bare('packages.git');
  await cli.run('repo', 'reg', path);
  await cli.run('rpkg', 'init', 'net/web', '--repository', 'packages', '--workspace', 'v1');
  const open = await session();
  try {
    await open.client.create(repositoryKind, {
      metadata: { name: 'second' },
      spec: { git: { repo: `file://${path}`, directory: 'net' } },
    });
  } finally {
    await open.close();
  }
  const propose = await cli.run('rpkg', 'propose', 'second.web.v1');
  expect(propose).toMatchObject({ code: 1, stderr: expect.stringContaining('conflict with existing repository') });
  expect((await cli.run('repo', 'get', 'second')).stdout).toMatch(/^second .* False /m);
  const list = await cli.run('rpkg', 'get', '-o', 'name');
  expect(list).toMatchObject({ code: 1, stdout: 'packagerevision.porch.kpt.dev/packages.net.web.v1\n' });
});

test('a repository follows the policies of its own namespace, and policies of other namespaces do not apply to it', async () => {
  const open = await session();
  const gate = (conditionType: string, namespace: string) =>
    open.client.create(packagePolicyKind, {
      metadata: { name: conditionType, namespace },
      spec: {
        selector: { repositorySelector: { matchLabels: { tier: 'one' } } },
        requiredGates: [{ conditionType }],
      },
    });
  try {
    const git = { repo: cli.bare('team.git') };
    await open.client.create(repositoryKind, {
      metadata: {
        name: 'team',
        namespace: 'team',
        labels: { tier: 'one' },
        annotations: { 'sluice.dev/gates': 'warn' },
      },
      spec: { git },
    });
    for (const namespace of ['team', 'default']) await gate(`of-${namespace}`, namespace);
    await open.repositories.open('team/team');
    // Another user has a repository of that name in another namespace; it is not the one that is open.
    await open.client.create(repositoryKind, {
      metadata: { name: 'team', labels: { tier: 'one' }, annotations: { 'sluice.dev/gates': 'off' } },
      spec: { git: { repo: cli.bare('other.git') } },
    });
    const { name } = await open.store.create(
      'team',
      { package: 'web', workspace: 'v1', source: { type: 'init' } },
      open.context(),
    );
    const { policy } = await open.store.evaluate(name);
    expect(policy.enforcement).toBe('warn');
    expect(policy.requiredGates.map(({ conditionType }) => conditionType)).toEqual(['of-team']);
  } finally {
    await open.close();
  }
});

test('the error about a data folder that cannot be created names the next step', async () => {
  const data = join(cli.bare('file.git'), 'HEAD', 'data');
  expect(await cli.run('repo', 'reg', '/srv/x.git', '--data', data)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^error: cannot make the data folder \S+: .*; name another one with --data/),
  });
});

test('a request opens the repository that it needs, and a client that lost a race reads the object of the other writer', async () => {
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  await cli.run('repo', 'reg', cli.bare('other.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const key = { namespace: 'default', name: 'packages.web.v1' };
  const opened = () => open.store.repositories().map(({ repository }) => repository);
  await using open = Object.assign(await session(), {
    async [Symbol.asyncDispose](this: Session) {
      await this.close();
    },
  });
  expect(opened()).toEqual([]);
  const { items } = await open.client.list(packageRevisionKind, { fieldSelector: 'spec.repository=packages' });
  expect([items.map(({ metadata }) => metadata.name), opened()]).toEqual([[key.name], ['packages']]);
  const read = await open.client.get(packageRevisionKind, key);
  expect((await cli.run('rpkg', 'condition', 'set', key.name, 'Tested', 'True')).code).toBe(0);
  const proposed = { ...read, spec: { ...read.spec, lifecycle: 'Proposed' as const } };
  await expect(open.client.update(packageRevisionKind, proposed)).rejects.toMatchObject({ code: 'Conflict' });
  const again = await open.client.get(packageRevisionKind, key);
  expect(again.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Tested', status: 'True' }));
  await open.client.update(packageRevisionKind, { ...again, spec: { ...again.spec, lifecycle: 'Proposed' } });
  await open.client.list(packageRevisionKind);
  expect(opened().sort()).toEqual(['other', 'packages']);
});
