import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { approveTogether } from '../../../test/support/approve-together.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, newSigner, serverTrust, trustOf } from '../../../test/support/trust.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { MAX_UPDATES } from '../../git/remote/remotes.ts';
import { type GroupMember, RequestGroup } from '../../resource/object/request-group.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../model/policy/policy.ts';
import { MAX_SHARED_WRITES } from '../transaction/write-queue.ts';
import { ReadOnlyLedger } from '../verify/read-only-ledger.ts';
import { verifyRepository } from '../verify/verify-repository.ts';
import type { PackageRepository } from './package-repository.ts';
import type { RevisionStore } from './revision-store.ts';

const wave = { actor: { name: 'controller:wave-plan' }, face: 'controller', reason: 'wave all of WavePlan p' } as const;
const nameOf = (path: string, workspace = 'v1') => `packages.${path}.${workspace}`;

let scratch: Scratch;
let store: RevisionStore;
let repository: PackageRepository;
let policy: EffectivePolicy;
beforeEach(async () => {
  scratch = await scratchRepository();
  policy = DEFAULT_POLICY;
  ({ store, repository } = await scratch.open({ policyFor: () => policy }));
});
afterEach(() => scratch[Symbol.asyncDispose]());

async function propose(...paths: string[]): Promise<string[]> {
  for (const path of paths) {
    await store.create('packages', { package: path, workspace: 'v1', source: { type: 'init' } }, anna);
    await store.update(nameOf(path), { action: 'propose' }, anna);
  }
  return paths.map((path) => nameOf(path));
}

/** Approves all of them; fails if one is refused. */
async function approve(names: readonly string[]): Promise<void> {
  for (const result of await approveTogether(store, names, wave)) if (result.status === 'rejected') throw result.reason;
}

const commits = async () => Number(await scratch.git('rev-list', '--first-parent', '--count', 'main'));
const tags = async () => (await scratch.git('tag', '--list')).split('\n');
const parents = async (commit = 'main') => (await scratch.git('rev-parse', `${commit}^@`)).split('\n');

/** What is out of band, as another process reads it that knows the keys, and with the ledger or without. */
async function findings(): Promise<string[]> {
  const git = await openRepository(scratch.path);
  const refs = await git.listRefs();
  const ledger = ReadOnlyLedger.ofKeys(serverTrust.ledger.keys());
  const { verified } = await verifyRepository({ git, layout: MAIN_LAYOUT, refs, ledger });
  await git.close();
  return verified.flatMap(({ ref, finding }) => (finding === undefined ? [] : `${ref} ${finding.reason}`));
}

/** `<tag> <reason>` of the publications that do not count for the server, once it has read the refs again. */
async function outOfBand(): Promise<string[]> {
  await repository.refresh();
  await repository.checked();
  return store
    .list({ repository: 'packages' })
    .flatMap(({ ref, outOfBand }) => (outOfBand === undefined ? [] : `${ref} ${outOfBand.reason}`));
}

describe('approvals of a group', () => {
  test('are one commit with all packages and drafts, and a signed tag for each', async () => {
    const names = await propose(...Array.from({ length: 20 }, (_, number) => `p${number}`));
    const drafts = names.map((name) => store.get(name).commit);
    const [before, head] = [await commits(), await scratch.git('rev-parse', 'main')];
    await approve(names);
    expect((await commits()) - before).toBe(1);
    const [first, ...others] = await parents();
    // The drafts are in the order in which their requests arrived.
    expect([first, ...others.toSorted()]).toEqual([head, ...drafts.toSorted()]);
    const message = await scratch.git('log', '-1', '--format=%B', 'main');
    expect(message).toContain('Approving 20 package revisions\n');
    expect(message.match(/^kpt:.*$/gm)).toHaveLength(20);
    expect(message).toContain('kpt:{"package":"p7","workspaceName":"v1","revision":"1"}\n');
    expect(message).toContain('Sluice-Reason: wave all of WavePlan p');
    expect(await tags()).toHaveLength(20);
    expect(await scratch.git('for-each-ref', 'refs/heads/proposed', 'refs/heads/drafts')).toBe('');
    for (const name of names) {
      const row = store.get(name);
      expect(row).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
      expect(row.commit).toBe(await scratch.git('rev-parse', 'main'));
      expect(row.tip.facts.statement?.statement).toMatchObject({ package: row.path, sharedCommit: row.commit });
      expect(row.tip.parents).toEqual([head, row.tip.facts.statement?.statement.draft]);
      expect(await scratch.git('cat-file', '-t', `refs/tags/${row.path}/v1`)).toBe('tag');
    }
    // As docs/trust.md reads it.
    const format = '--format=%(contents:trailers:key=Sluice-Statement,valueonly)';
    expect(JSON.parse(await scratch.git('for-each-ref', format, 'refs/tags/p7/v1'))).toMatchObject({
      ...{ package: 'p7', revision: 1, onto: head, draft: drafts[7], branch: 'main' },
      sharedCommit: await scratch.git('rev-parse', 'p7/v1^{}'),
      tree: await scratch.git('rev-parse', 'p7/v1:p7'),
    });
    expect(await findings()).toEqual([]);
    await scratch.git('fsck', '--strict');
  });

  test('are at most so many as one push can change refs for', async () => {
    const names = await propose('a', 'b', 'c');
    const counts: number[] = [];
    const transaction = repository.git.transaction.bind(repository.git);
    repository.git.transaction = (updates) => {
      counts.push(updates.length);
      return transaction(updates);
    };
    await approve(names);
    const [count = 0] = counts;
    // That of the main branch is shared.
    expect(counts).toEqual([3 * names.length + 1]);
    expect(((count - 1) / names.length) * MAX_SHARED_WRITES + 1).toBeLessThanOrEqual(MAX_UPDATES);
  });

  test('are read by another process, with and without the ledger, and each has a history of its own', async () => {
    const names = await propose('a', 'b', 'c');
    await approve(names);
    const later = await scratch.open();
    await later.repository.checked();
    for (const name of names) {
      expect(later.store.get(name)).toMatchObject({ outOfBand: undefined, revision: 1 });
      const history = await later.store.history(name);
      expect(history.map(({ action, by }) => `${action} ${by}`)).toEqual([
        'approve controller:wave-plan',
        'propose anna',
        'init anna',
      ]);
      expect(history[0]).toMatchObject({ reason: wave.reason, commit: later.store.get(name).commit });
      expect(history[0]?.what).toBe(`Approving package revision ${later.store.get(name).path}/1, with others`);
      expect(history[2]?.commit).toBe(later.store.get(name).tip.parents[1]);
    }
  });

  test('of which one is refused are one commit without it', async () => {
    const names = await propose('a', 'b', 'c');
    const refused = nameOf('b');
    const gate = { conditionType: 'tested', approveOnly: true, policy: 'p' };
    repository.policyFor = ({ name }) => (name === refused ? { ...policy, requiredGates: [gate] } : policy);
    const before = await commits();
    const results = await approveTogether(store, names, wave);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'Refused', message: expect.stringContaining('gate tested') } });
    expect(await tags()).toEqual(['a/v1', 'c/v1']);
    expect((await commits()) - before).toBe(1);
    expect(await scratch.git('ls-tree', '--name-only', 'main')).toBe('README.md\na\nc');
    expect(store.get(refused).lifecycle).toBe('Proposed');
    expect(await findings()).toEqual([]);
  });

  test('are not published if a freeze begins while they are planned, also one that only a refresh shows', async () => {
    const names = await propose('a', 'b', 'c');
    const frozen = nameOf('b');
    const freeze = {
      name: 'stop',
      namespace: 'ops',
      isInstallation: true,
      reason: 'outage',
      since: '2026-01-01T00:00:00Z',
    };
    const { trust } = repository;
    const sign = trust.sign.bind(trust) as typeof trust.sign;
    let isRead = false;
    repository.policyFor = ({ name }) => (isRead && name === frozen ? { ...policy, freezes: [freeze] } : policy);
    trust.sign = (statement) => {
      repository.refreshPolicies = async () => {
        isRead = true;
      };
      return sign(statement);
    };
    const results = await approveTogether(store, names, wave);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'Refused', message: expect.stringContaining('outage') } });
    expect(await tags()).toEqual(['a/v1', 'c/v1']);
    expect(store.get(frozen).lifecycle).toBe('Proposed');
    expect(await findings()).toEqual([]);
  });

  test('of which several cannot be planned are planned once more without all of these', async () => {
    const names = await propose(...Array.from({ length: 12 }, (_, number) => `p${number}`));
    const { trust } = repository;
    const sign = trust.sign.bind(trust) as typeof trust.sign;
    let signed = 0;
    trust.sign = (statement) => {
      signed += 1;
      if ('package' in statement && Number(statement.package.slice(1)) >= 4)
        throw new SluiceError('LimitExceeded', `the statement of ${statement.package} is too large`);
      return sign(statement);
    };
    const results = await approveTogether(store, names, wave);
    const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []));
    expect(failed).toEqual(Array.from({ length: 8 }, (_, at) => `the statement of p${at + 4} is too large`));
    expect(await tags()).toEqual(['p0/v1', 'p1/v1', 'p2/v1', 'p3/v1']);
    expect(signed).toBe(12 + 4);
  });

  test('of which one is left have a commit as one approval alone has', async () => {
    const names = await propose('a', 'b');
    const gate = { conditionType: 'tested', approveOnly: true, policy: 'p' };
    repository.policyFor = ({ name }) => (name === nameOf('b') ? { ...policy, requiredGates: [gate] } : policy);
    await approveTogether(store, names, wave);
    expect(await scratch.git('log', '-1', '--format=%s', 'main')).toBe('Approving package revision a/1');
    expect(await scratch.git('cat-file', '-t', 'refs/tags/a/v1')).toBe('commit');
    expect(store.get(nameOf('a')).tip.facts.statement?.statement.sharedCommit).toBeUndefined();
  });

  test('of which a push moves one are one commit without it, which is judged by its new content', async () => {
    const names = await propose('a', 'b', 'c');
    const git = await openRepository(scratch.path);
    const moved = await commitFiles(git, { 'b/more.yaml': 'a: 1\n' }, scratch.clock.now(), { branch: 'proposed/b/v1' });
    await git.close();
    const before = await commits();
    const results = await approveTogether(store, names, wave);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'Conflict' } });
    expect((await commits()) - before).toBe(1);
    expect(await tags()).toEqual(['a/v1', 'c/v1']);
    expect(await scratch.git('rev-parse', 'proposed/b/v1')).toBe(moved);
  });

  test('whose drafts are one commit have it as one parent', async () => {
    const git = await openRepository(scratch.path);
    const kptfile = (name: string) => `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`;
    const both = { 'a/Kptfile': kptfile('a'), 'b/Kptfile': kptfile('b') };
    const options = { branch: 'proposed/a/v1', from: 'refs/heads/main' };
    const draft = await commitFiles(git, both, scratch.clock.now(), options);
    await git.close();
    await scratch.git('update-ref', 'refs/heads/proposed/b/v1', draft);
    await repository.refresh();
    const head = await scratch.git('rev-parse', 'main');
    await approve([nameOf('a'), nameOf('b')]);
    expect(await parents()).toEqual([head, draft]);
    expect(await findings()).toEqual([]);
  });

  test('and others of the same request are commits on top of each other', async () => {
    const names = await propose('a', 'b', 'c', 'd', 'e');
    const before = await commits();
    const one = (name: string) => store.update(name, { action: 'approve' }, anna);
    await Promise.all([one(nameOf('d')), approve(names.slice(0, 3)), one(nameOf('e'))]);
    expect((await commits()) - before).toBe(3);
    expect(await tags()).toEqual(['a/v1', 'b/v1', 'c/v1', 'd/v1', 'e/v1']);
    expect(await outOfBand()).toEqual([]);
    expect(await findings()).toEqual([]);
  });
});

test('two groups with the same revisions in another order do not wait for each other', async () => {
  const [a = '', b = ''] = await propose('a', 'b');
  const [one, two] = [new RequestGroup(2, 2 ** 30), new RequestGroup(2, 2 ** 30)];
  const request = async (name: string, together: GroupMember | undefined) => {
    await store.update(name, { action: 'approve' }, { ...wave, ...(together && { together }) });
  };
  const requests = [
    ...[request(a, one.members[0]), request(b, two.members[0])],
    ...[request(b, one.members[1]), request(a, two.members[1])],
  ];
  const results = (await Promise.allSettled(requests)).map(({ status }) => status);
  // The first request for each revision publishes it, and which that is depends on the group that writes first.
  const [firstOfA, firstOfB, secondOfB, secondOfA] = results;
  expect([[firstOfA, secondOfA].sort(), [firstOfB, secondOfB].sort()]).toEqual([
    ['fulfilled', 'rejected'],
    ['fulfilled', 'rejected'],
  ]);
  expect(await tags()).toEqual(['a/v1', 'b/v1']);
});

test('two processes that approve at once make one commit each, the second on top of the first', async () => {
  const names = await propose('a', 'b', 'c', 'd');
  const other = await scratch.open();
  const [before, head] = [await commits(), await scratch.git('rev-parse', 'main')];
  const results = await Promise.all([
    approveTogether(store, names.slice(0, 2), wave),
    approveTogether(other.store, names.slice(2), wave),
  ]);
  expect(results.flat().map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
  expect((await commits()) - before).toBe(2);
  expect(await scratch.git('ls-tree', '--name-only', 'main')).toBe('README.md\na\nb\nc\nd');
  const [first] = await parents();
  expect((await parents(first))[0]).toBe(head);
  expect(await outOfBand()).toEqual([]);
  expect(await findings()).toEqual([]);
});

describe('a publication in a shared commit', () => {
  test('is deleted in order without the others, and its number is given again', async () => {
    await approve(await propose('a'));
    const approveNext = async (workspace: string, other: string) => {
      const source = { type: 'copy', source: nameOf('a') } as const;
      await store.create('packages', { package: 'a', workspace, source }, anna);
      await store.update(nameOf('a', workspace), { action: 'propose' }, anna);
      await approve([nameOf('a', workspace), ...(await propose(other))]);
      expect(store.get(nameOf('a', workspace))).toMatchObject({ revision: 2, outOfBand: undefined });
      return scratch.git('rev-parse', 'refs/tags/a/v2');
    };
    const first = await approveNext('w2', 'b');
    await store.update(nameOf('a', 'w2'), { action: 'propose-deletion' }, anna);
    await store.update(nameOf('a', 'w2'), { action: 'delete' }, anna);
    expect(await outOfBand()).toEqual([]);
    expect(await findings()).toEqual([]);
    await scratch.git('update-ref', 'refs/tags/a/v2', first);
    expect(await outOfBand()).toContain('refs/tags/a/v2 RolledBack');
    await scratch.git('update-ref', '-d', 'refs/tags/a/v2');
    expect(await outOfBand()).toEqual([]);
    await approveNext('w3', 'c');
    expect(await findings()).toEqual([]);
    await scratch.git('update-ref', 'refs/tags/a/v2', first);
    expect(await outOfBand()).toContain('refs/tags/a/v2 RolledBack');
    // Without a ledger the statement of the other package in the second commit proves it.
    expect(await findings()).toContain('refs/tags/a/v2 RolledBack');
  });

  test('stays in band when its key is revoked, and what the key signs later does not count', async () => {
    const key = newSigner();
    let signing = key;
    const server = { ...newServerTrust(key), signer: () => signing };
    const openAs = async (trust: typeof server) => {
      const git = await openRepository(scratch.path);
      return scratch.open({ ...(await trustOf(git, scratch.path, MAIN_LAYOUT, trust)), git });
    };
    ({ store, repository } = await openAs(server));
    await approve(await propose('a', 'b'));
    signing = newSigner();
    const { fingerprint, publicKey } = signing;
    const at = '2026-01-03T00:00:00Z';
    server.ledger.addKey({ fingerprint, publicKey, comment: 'next', origin: 'own', addedAt: at });
    server.ledger.revokeKey(key.fingerprint, at);
    await repository.sync();
    expect(await outOfBand()).toEqual([]);
    const own = { store, repository };
    ({ store, repository } = await openAs({ ...newServerTrust(key), signer: () => key }));
    await approve(await propose('c', 'd'));
    ({ store, repository } = own);
    await repository.sync();
    expect((await outOfBand()).filter((flaw) => flaw.startsWith('refs/tags/'))).toEqual([
      'refs/tags/c/v1 RevokedKey',
      'refs/tags/d/v1 RevokedKey',
    ]);
  });

  test('is identified in a clone without the id of the repository', async () => {
    await approve(await propose('a', 'b'));
    const git = await openRepository(scratch.path);
    const refs = (await git.listRefs()).filter(({ name }) => !name.startsWith('refs/sluice/'));
    const ledger = ReadOnlyLedger.ofKeys(serverTrust.ledger.keys());
    const result = await verifyRepository({ git, layout: MAIN_LAYOUT, refs, ledger, isClone: true });
    await git.close();
    expect(result.verified.filter(({ finding }) => finding !== undefined)).toEqual([]);
    expect(result.verified.filter(({ kind }) => kind === 'publication')).toHaveLength(2);
  });
});

describe('tampering', () => {
  let oids: Record<string, string>;
  beforeEach(async () => {
    await approve(await propose('a', 'b', 'c'));
    await approve(await propose('d', 'e'));
    oids = {};
    for (const tag of await tags()) oids[tag] = await scratch.git('rev-parse', `refs/tags/${tag}`);
  });

  const set = (tag: string, oid: string) => scratch.git('update-ref', `refs/tags/${tag}`, oid);

  test('with the tag of another member: its statement is about another package', async () => {
    await set('a/v1', oids['b/v1'] ?? '');
    expect(await outOfBand()).toContain('refs/tags/a/v1 OtherRevision');
    expect(await findings()).toContain('refs/tags/a/v1 OtherRevision');
  });

  test('with a lightweight tag on the commit, or one more package of it', async () => {
    await set('a/v1', store.get(nameOf('b')).commit);
    await set('a/v2', store.get(nameOf('b')).commit);
    await set('b/v7', oids['b/v1'] ?? '');
    expect(await outOfBand()).toEqual(
      expect.arrayContaining([
        'refs/tags/a/v1 NotAnApproval',
        'refs/tags/a/v2 NotAnApproval',
        'refs/tags/b/v7 OtherRevision',
      ]),
    );
    expect(await findings()).toEqual(
      expect.arrayContaining([
        'refs/tags/a/v1 NotAnApproval',
        'refs/tags/a/v2 NotAnApproval',
        'refs/tags/b/v7 OtherRevision',
      ]),
    );
  });

  test('with the statement of a member in a tag on another commit', async () => {
    const text = await scratch.git('for-each-ref', '--format=%(contents)', 'refs/tags/a/v1');
    const onto = store.get(nameOf('a')).tip.parents[0] ?? '';
    // The commit of the others has the same package; one beside it has the same parent too.
    const tree = await scratch.git('rev-parse', `${store.get(nameOf('a')).commit}^{tree}`);
    const person = ['-c', 'user.name=eve', '-c', 'user.email=eve@example.com'];
    const beside = await scratch.git(...person, 'commit-tree', tree, '-p', onto, '-m', 'beside');
    for (const [commit, reason] of [
      [store.get(nameOf('d')).commit, 'OtherCommit'],
      [beside, 'OtherCommit'],
    ] as const) {
      await scratch.git(...person, 'tag', '--force', '--annotate', '--cleanup=verbatim', '-m', text, 'a/v1', commit);
      expect(await outOfBand()).toContain(`refs/tags/a/v1 ${reason}`);
      expect(await findings()).toContain(`refs/tags/a/v1 ${reason}`);
    }
  });

  test('with another commit in the place of the shared one, also for a process that has no ledger', async () => {
    const { commit, tip } = store.get(nameOf('d'));
    const person = ['-c', 'user.name=eve', '-c', 'user.email=eve@example.com'];
    const tree = await scratch.git('rev-parse', `${commit}^{tree}`);
    const [onto = '', draft = ''] = tip.parents;
    const message = await scratch.git('log', '-1', '--format=%B', commit);
    const other = await scratch.git(...person, 'commit-tree', tree, '-p', onto, '-p', draft, '-m', message);
    const text = await scratch.git('for-each-ref', '--format=%(contents)', 'refs/tags/d/v1');
    await scratch.git('update-ref', 'refs/heads/main', other);
    await scratch.git(...person, 'tag', '--force', '--annotate', '--cleanup=verbatim', '-m', text, 'd/v1', other);
    expect(await outOfBand()).toContain('refs/tags/d/v1 OtherCommit');
    expect(await findings()).toEqual(
      expect.arrayContaining(['refs/tags/d/v1 OtherCommit', 'refs/tags/e/v1 NotOnMain']),
    );
  });
});
