import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HostFailures } from '../../controllers/pull-request/host-failures.ts';
import { type Clock, systemClock } from '../../src/foundation/time/clock.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { DEFAULT_TIMEOUTS } from '../../src/git/process/engine-options.ts';
import { explainRevision } from '../../src/package/api/explain/explain-revision.ts';
import { stateExplainer } from '../../src/package/api/explain/explain-state.ts';
import { packageStorages } from '../../src/package/api/package-storages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { MERGE_PATCH, startTestServer } from '../../src/server/testing.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { openStore } from '../support/open-store.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { outcomeOf } from '../support/shop.ts';
import { trustOf } from '../support/trust.ts';

const NAME = 'packages.shop.v1';
const credentials = { username: 'robot', password: 'a-secret-word' };

/** A store on a repository behind the server, with the mirror of one process. */
function connect(
  scratch: Scratch,
  server: GitServer,
  process = 'one',
  annotations: Record<string, string> = {},
  clock: Clock = systemClock,
): Promise<RevisionStore> {
  return openStore(`${server.url}/packages.git`, join(scratch.folder, process), {
    annotations,
    credentials: async () => ({ basic: credentials }),
    git: { clock },
  });
}

async function proposed(store: RevisionStore): Promise<void> {
  await store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  await store.update(NAME, { action: 'propose' }, anna);
}

test('a remote that hangs, drops the connection, refuses or disappears causes no partial changes', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder, auth: credentials });
  const clock = new ManualClock(Date.now());
  const store = await connect(scratch, server, 'one', {}, clock);
  await proposed(store);
  const before = await scratch.git('for-each-ref');
  const approve = () => outcomeOf(store.update(NAME, { action: 'approve' }, anna));

  server.behaviour.hang = 'push';
  const earlier = server.requests.length;
  const late = approve();
  await expect.poll(() => server.requests.slice(earlier).some(({ method }) => method === 'POST')).toBe(true);
  clock.advance(DEFAULT_TIMEOUTS.push);
  expect(await late).toMatch(/^Timeout: /);
  server.behaviour.hang = undefined;
  server.behaviour.dropPush = 'before';
  expect(await approve()).toMatch(/^(Unavailable|Conflict): /);
  server.behaviour.dropPush = undefined;
  server.behaviour.refuse = 503;
  expect(await approve()).toMatch(/^Unavailable: /);
  server.behaviour.refuse = undefined;
  expect(await scratch.git('for-each-ref')).toBe(before);
  expect(store.get(NAME).lifecycle).toBe('Proposed');

  // The push was carried out and its response lost: Sluice reads the refs to find out.
  server.behaviour.dropPush = 'after';
  expect(await approve()).toBe('succeeded');
  server.behaviour.dropPush = undefined;
  expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', revision: 1 });

  await server.close();
  const gone = await outcomeOf(
    store.create('packages', { package: 'web', workspace: 'v1', source: { type: 'init' } }, anna),
  );
  expect(gone).toMatch(/^Unavailable: /);
  expect(gone).not.toContain(credentials.password);
  expect(store.find('packages.web.v1')).toBeUndefined();
  await store.close();
});

test('a hook that refuses the main branch refuses the whole publication, with its own message', async () => {
  await using scratch = await scratchRepository();
  const update = '#!/bin/sh\nif [ "$1" = refs/heads/main ]; then echo "main is frozen" >&2; exit 1; fi\n';
  const server = await startGitServer({ root: scratch.folder, hooks: { update } });
  const store = await connect(scratch, server);
  await proposed(store);
  const before = await scratch.git('for-each-ref');
  expect(await outcomeOf(store.update(NAME, { action: 'approve' }, anna))).toMatch(/^PushRefused: .*main is frozen/);
  expect(await scratch.git('for-each-ref')).toBe(before);
  await store.close();
  await server.close();
});

test('one PATCH of a draft on a protected branch costs one push, and the message of the host is stored', async () => {
  await using scratch = await scratchRepository();
  const closed = join(scratch.folder, 'closed');
  const update = `#!/bin/sh\nif test -e '${closed}'; then echo "protected branch" >&2; exit 1; fi\n`;
  const server = await startGitServer({ root: scratch.folder, hooks: { update } });
  const store = await connect(scratch, server);
  const api = await startTestServer({}, []);
  const { revisions } = packageStorages({ store, log: api.log, clock: systemClock });
  api.registry.register(revisions);
  await store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  const pushes = () =>
    server.requests.filter(({ method, url }) => method === 'POST' && url.includes('receive-pack')).length;
  const patch = async () => {
    const path = `/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/${NAME}`;
    const body = JSON.stringify({ metadata: { labels: { team: 'shop' } } });
    const response = await api.fetch(path, { method: 'PATCH', body, headers: { 'content-type': MERGE_PATCH } });
    return { status: response.status, body: (await response.json()) as { reason?: string; message?: string } };
  };
  await writeFile(closed, '');
  const before = pushes();
  expect(await patch()).toMatchObject({
    status: 403,
    body: { reason: 'Forbidden', message: expect.stringContaining('protected branch') },
  });
  expect(pushes() - before).toBe(1);
  expect(store.repository('packages').refusals.refusedPushes()).toMatchObject([{ revision: NAME }]);
  // A command such as "sluice why" is a process of its own.
  const beside = await connect(scratch, server);
  expect(beside.repository('packages').refusals.refusedPushes()).toMatchObject([
    { revision: NAME, message: expect.stringContaining('protected branch') },
  ]);
  await beside.close();
  await rm(closed);
  expect(await patch()).toMatchObject({ status: 200 });
  expect(store.repository('packages').refusals.refusedPushes()).toEqual([]);
  await api.stop();
  await store.close();
  await server.close();
});

test('why the pull request of a proposal fails is explained until the host accepts it, by other processes too', async () => {
  await using scratch = await scratchRepository();
  const closed = join(scratch.folder, 'closed');
  const update = `#!/bin/sh\nif test -e '${closed}'; then echo "main is frozen" >&2; exit 1; fi\n`;
  const server = await startGitServer({ root: scratch.folder, hooks: { update } });
  const store = await connect(scratch, server);
  await proposed(store);
  const recorded: string[] = [];
  const failures = new HostFailures(store, {
    record: (_object, _type, reason, message) => recorded.push(`${reason}: ${message}`),
    forgetTopic: () => recorded.splice(0),
  });
  const object = { apiVersion: 'v1', kind: 'Any', metadata: { namespace: 'default', name: NAME } };
  failures.report(object, 'install App 7 in team/packages');
  expect(recorded).toEqual(['PullRequestFailed: install App 7 in team/packages']);
  const beside = await connect(scratch, server);
  const reasons = async (of: RevisionStore) => {
    const explained = { evaluation: await of.evaluate(NAME), siblings: [], refusals: [], recordFlaw: undefined };
    return (await stateExplainer(of).explain(explained, {} as never)).reasons;
  };
  const failed = { reason: 'PullRequestFailed', message: 'install App 7 in team/packages' };
  for (const of of [store, beside]) expect(await reasons(of)).toContainEqual(failed);
  // That it is not merged is another matter, and stays when this one ends. It is no refused push.
  const note = { message: 'pull request 1 is not merged: a check is missing', next: 'add the check: pull request 1' };
  store.repository('packages').refusals.noteNotMerged(NAME, note);
  expect(store.repository('packages').refusals.refusedPushes()).toEqual([]);
  failures.end({ namespace: 'default', name: NAME });
  for (const of of [store, beside]) {
    expect(await reasons(of)).not.toContainEqual(failed);
    expect(await reasons(of)).toContainEqual({ reason: 'NotMerged', message: note.message });
    const surroundings = { resolvers: [], disabled: [], running: true, now: Date.now(), actor: 'anna' };
    const { next } = await explainRevision(of, of.get(NAME), [stateExplainer(of)], surroundings);
    expect(next).toEqual([note.next]);
  }
  // The next write decides again.
  await store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
  expect(await reasons(store)).not.toContainEqual(expect.objectContaining({ reason: 'NotMerged' }));
  // A draft has no pull request.
  failures.report(object, failed.message);
  expect(await reasons(store)).toContainEqual(failed);
  await store.update(NAME, { action: 'reject' }, anna);
  expect(await reasons(store)).not.toContainEqual(failed);
  failures.end({ namespace: 'default', name: NAME });
  await store.update(NAME, { action: 'propose' }, anna);
  await writeFile(closed, '');
  await expect(store.update(NAME, { action: 'approve' }, anna)).rejects.toThrow('main is frozen');
  expect(await reasons(store)).toContainEqual(expect.objectContaining({ reason: 'PushRefused' }));
  expect(store.repository('packages').refusals.refusedPushes()).toHaveLength(1);
  await beside.close();
  await store.close();
  await server.close();
});

test('a host that refuses other refs than branches and tags gets the records as branches', async () => {
  await using scratch = await scratchRepository();
  const update =
    '#!/bin/sh\ncase "$1" in refs/heads/*|refs/tags/*) ;; *) echo "only branches and tags" >&2; exit 1;; esac\n';
  const server = await startGitServer({ root: scratch.folder, hooks: { update } });
  const store = await connect(scratch, server);
  await proposed(store);
  expect(await scratch.git('for-each-ref', '--format=%(refname)')).toContain('refs/heads/sluice-records/');
  // It was probed once; opening the same mirror again pushes no probe.
  await store.close();
  const pushes = () => server.requests.filter((request) => request.url.includes('git-receive-pack')).length;
  const before = pushes();
  const again = await connect(scratch, server);
  expect(pushes()).toBe(before);
  const other = await connect(scratch, server, 'two');
  expect((await other.evaluate(NAME)).record.steps.map((step) => step.action)).toEqual(['propose']);
  await again.update(NAME, { action: 'approve' }, anna);
  expect(await scratch.git('for-each-ref', '--format=%(refname)')).not.toContain('sluice-records');
  await again.close();
  const readOnly = await startGitServer({
    root: scratch.folder,
    hooks: { 'pre-receive': '#!/bin/sh\nexit 1\n' },
  });
  expect((await connect(scratch, readOnly, 'three')).get(NAME).lifecycle).toBe('Published');
  await readOnly.close();
  await other.close();
  await server.close();
});

test('a hook that refuses everything for a while does not put the records into branches', async () => {
  await using scratch = await scratchRepository();
  const closed = join(scratch.folder, 'closed');
  const server = await startGitServer({
    root: scratch.folder,
    hooks: { 'pre-receive': `#!/bin/sh\n! test -e '${closed}'\n` },
  });
  await writeFile(closed, '');
  const first = await connect(scratch, server);
  await first.close();
  await rm(closed);
  const store = await connect(scratch, server);
  await proposed(store);
  const refs = await scratch.git('for-each-ref', '--format=%(refname)');
  expect(refs).toContain('refs/sluice/records/');
  expect(refs).not.toContain('sluice-records');
  expect(refs).not.toContain('probe');
  await store.close();
  await server.close();
});

test('records stay beside the id, although a host refuses the probe for their place', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({
    root: scratch.folder,
    hooks: { update: '#!/bin/sh\ncase "$1" in refs/sluice/records/probe-*) exit 1;; esac\n' },
  });
  const { path } = scratch;
  const opened = await openRepository(path);
  await trustOf(opened, path);
  await opened.close();
  const store = await connect(scratch, server);
  await proposed(store);
  const refs = await scratch.git('for-each-ref', '--format=%(refname)');
  expect(refs).toContain('refs/sluice/records/');
  expect(refs).not.toContain('sluice-records');
  await store.close();
  await server.close();
});

test('a host that hides other refs than branches and tags gets the records as branches', async () => {
  await using scratch = await scratchRepository();
  await scratch.git('config', 'receive.hideRefs', 'refs/sluice');
  const server = await startGitServer({ root: scratch.folder });
  const store = await connect(scratch, server);
  await proposed(store);
  const refs = await scratch.git('for-each-ref', '--format=%(refname)');
  expect(refs).toContain('refs/heads/sluice-records/');
  expect(refs).not.toContain('probe');
  await store.close();
  await server.close();
});

test('rewritten history and removed branches are followed', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const store = await connect(scratch, server);
  await proposed(store);
  await store.update(NAME, { action: 'approve' }, anna);
  await store.create('packages', { package: 'web', workspace: 'v1', source: { type: 'init' } }, anna);
  const repository = store.repository('packages');
  await scratch.git('update-ref', '-d', 'refs/heads/drafts/web/v1');
  await scratch.git('update-ref', 'refs/heads/main', 'main~1');
  await repository.sync();
  expect(store.find('packages.web.v1')).toBeUndefined();
  expect(store.find('packages.shop.main')).toBeUndefined();
  expect(store.get(NAME).lifecycle).toBe('Published');
  // The next operation is based on the current history.
  await store.create('packages', { package: 'shop', workspace: 'v2', source: { type: 'copy', source: NAME } }, anna);
  await store.update('packages.shop.v2', { action: 'propose' }, anna);
  await store.update('packages.shop.v2', { action: 'approve' }, anna);
  expect(store.get('packages.shop.v2').revision).toBe(2);
  expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
  await store.close();
  await server.close();
});

test('two processes on one remote: one wins, the other gets the conflict and the current state', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const one = await connect(scratch, server, 'one');
  await one.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  const two = await connect(scratch, server, 'two');
  const change = (store: RevisionStore, text: string) =>
    outcomeOf(store.change(NAME, { files: new Map([['a.yaml', Buffer.from(text)]]) }, anna));
  const results = await Promise.all([change(one, 'a: 1\n'), change(two, 'a: 2\n')]);
  expect(results.filter((result) => result === 'succeeded')).toHaveLength(1);
  expect(results.find((result) => result !== 'succeeded')).toMatch(/^Conflict: /);
  await Promise.all([one.repository('packages').sync(), two.repository('packages').sync()]);
  expect(two.get(NAME).commit).toBe(one.get(NAME).commit);
  // The mirrors are only caches: without them nothing is lost.
  await one.close();
  await rm(join(scratch.folder, 'one'), { recursive: true });
  const again = await connect(scratch, server, 'one');
  expect(again.list().map(({ name, etag }) => [name, etag])).toEqual(two.list().map(({ name, etag }) => [name, etag]));
  await Promise.all([again.close(), two.close()]);
  await server.close();
});

test('a push by plain git over the same server is recorded', async () => {
  await using scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder });
  const store = await connect(scratch, server);
  const git = await openRepository(scratch.path);
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
  const options = { branch: 'drafts/shop/v1', from: 'refs/heads/main' };
  await commitFiles(git, { 'shop/Kptfile': kptfile }, Date.now(), options);
  await git.close();
  await store.repository('packages').sync();
  expect(store.get(NAME)).toMatchObject({ lifecycle: 'Draft', problem: undefined });
  await store.close();
  await server.close();
});

test.each(['auto', 'git'])(
  'annotations of a repository take effect: transport %s, and options of its pushes',
  async (transport) => {
    await using scratch = await scratchRepository();
    await scratch.git('config', 'receive.advertisePushOptions', 'true');
    const hasReported = join(scratch.folder, 'heard');
    const hook = `#!/bin/sh\necho "$GIT_PUSH_OPTION_COUNT $GIT_PUSH_OPTION_0" >> '${hasReported}'\n`;
    const server = await startGitServer({ root: scratch.folder, hooks: { 'pre-receive': hook } });
    const asked = { 'sluice.dev/transport': transport, 'sluice.dev/push-options': 'ci.skip' };
    const store = await connect(scratch, server, 'one', asked);
    await rm(hasReported, { force: true });
    await store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
    expect(await readFile(hasReported, 'utf8')).toBe('1 ci.skip\n');
    const { message } = store.repository('packages').git.remoteNote ?? {};
    expect(message).toContain(
      transport === 'git' ? 'push by git, because the transport git was selected' : 'push by own client',
    );
    await store.close();
    await server.close();
  },
);
