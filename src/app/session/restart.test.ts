import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from './session.ts';

const ANNA = { actor: { name: 'anna' }, face: 'cli' } as const;

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('packages.git'));
  for (const name of ['one', 'two'])
    await cli.run('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'v1');
});
afterEach(() => cli[Symbol.asyncDispose]());

/** A process that has looked at all repositories, as `up` has before it serves. */
async function start(): Promise<Session> {
  const session = await Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true });
  await session.repositories.openAll();
  session.endInitialPhase();
  return session;
}

async function versions(session: Session) {
  const { items, resourceVersion } = await session.client.list(packageRevisionKind);
  const byName = new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  return { byName, resourceVersion };
}

async function events(session: Session, resourceVersion: string, count: number): Promise<string[]> {
  const seen: string[] = [];
  const { signal } = new AbortController();
  for await (const event of session.client.watch(packageRevisionKind, { resourceVersion, signal })) {
    if (event.type === 'BOOKMARK') continue;
    seen.push(`${event.type} ${event.object.metadata.name} ${event.object.spec.lifecycle}`);
    if (seen.length === count) break;
  }
  return seen;
}

/** Whether a watch from a version stands. */
async function bookmark(session: Session, resourceVersion: string): Promise<string> {
  const end = new AbortController();
  const watch = session.client
    .watch(packageRevisionKind, { resourceVersion, signal: end.signal })
    [Symbol.asyncIterator]();
  const first = watch.next();
  await setImmediate();
  end.abort();
  return (await first).done === true ? 'quiet' : 'event';
}

const propose = async (session: Session, name: string) => {
  const object = await session.client.get(packageRevisionKind, { name });
  await session.client.update(packageRevisionKind, { ...object, spec: { ...object.spec, lifecycle: 'Proposed' } });
};

test('package revisions keep their versions over a restart, and a watch resumes', async () => {
  const first = await start();
  const before = await versions(first);
  await propose(first, 'packages.one.v1');
  const after = await versions(first);
  await first.close();
  const second = await start();
  expect((await versions(second)).byName).toEqual(after.byName);
  await propose(second, 'packages.two.v1');
  expect(await events(second, before.resourceVersion, 2)).toEqual([
    'MODIFIED packages.one.v1 Proposed',
    'MODIFIED packages.two.v1 Proposed',
  ]);
  await second.close();
});

test('what others change in Git meanwhile may have left a selection, so watchers list again', async () => {
  const first = await start();
  const { resourceVersion, byName } = await versions(first);
  await first.close();
  const tip = cli.git('packages.git', 'rev-parse', 'drafts/one/v1');
  const commit = cli.git('packages.git', 'commit-tree', '-p', tip, '-m', 'push', `${tip}^{tree}`);
  cli.git('packages.git', 'update-ref', 'refs/heads/drafts/one/v1', commit);
  const second = await start();
  const after = (await versions(second)).byName;
  expect(after.get('packages.two.v1')).toBe(byName.get('packages.two.v1'));
  expect(after.get('packages.one.v1')).not.toBe(byName.get('packages.one.v1'));
  await expect(events(second, resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  await second.close();
});

test('the server cannot report what others deleted in Git while it was down, so watchers list again', async () => {
  const first = await start();
  const { resourceVersion } = await versions(first);
  await first.close();
  cli.git('packages.git', 'update-ref', '-d', 'refs/heads/drafts/one/v1');
  const second = await start();
  await expect(events(second, resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  expect([...(await versions(second)).byName.keys()]).toEqual(['packages.two.v1']);
  await second.close();
});

test('a repository that is empty or unregistered after a restart ends the watches too', async () => {
  const first = await start();
  const { resourceVersion } = await versions(first);
  await first.close();
  for (const name of ['one', 'two']) cli.git('packages.git', 'update-ref', '-d', `refs/heads/drafts/${name}/v1`);
  const second = await start();
  await expect(events(second, resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  const empty = await versions(second);
  await second.store.create('packages', { package: 'three', workspace: 'v1', source: { type: 'init' } }, ANNA);
  await second.close();
  await cli.run('repo', 'unreg', 'packages');
  const third = await start();
  await expect(events(third, empty.resourceVersion, 1)).rejects.toMatchObject({ code: 'Expired' });
  await third.close();
  const fourth = await start();
  const { resourceVersion: quiet } = await versions(fourth);
  await fourth.close();
  // The server reports it once.
  const fifth = await start();
  expect(await bookmark(fifth, quiet)).toBe('quiet');
  await fifth.close();
});

test('the end of a freeze by a command is known to later processes', async () => {
  const freeze = freezeKind.complete({ metadata: { name: 'core', namespace: 'default' }, spec: { reason: 'repair' } });
  const ended = (session: Session) => session.readers.freezeTimes.in(['default']).map(({ name }) => name);
  const first = await start();
  await first.client.create(freezeKind, freeze);
  await first.close();
  const second = await start();
  expect(ended(second)).toEqual([]);
  await second.client.delete(freezeKind, { namespace: 'default', name: 'core' });
  const before = Date.now() + 1000;
  await second.close();
  const third = await start();
  expect(ended(third)).toEqual(['core']);
  expect(third.readers.freezeTimes.in(['default'])[0]?.until).toBeLessThan(before);
  await third.close();
});
