import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  anna,
  commitFiles,
  robot,
  type Scratch,
  scratchRepository,
} from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, serverTrust, trustOf } from '../../../../test/support/trust.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { withUnknownPusher } from '../../kernel/replay-record.ts';
import { hostUsersOf } from '../../model/policy/host-users.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../model/policy/policy.ts';
import type { Contributor } from '../../model/record/record.ts';
import { combinePolicies } from '../../store/policies/combine-policies.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import { SqliteAttributedPushes } from '../../trust/sqlite/sqlite-attributed-pushes.ts';
import { pipelineIssuers } from '../edit/render.ts';

const NAME = 'packages.shop.v1';
const BRANCH = 'drafts/shop/v1';
const REF = `refs/heads/${BRANCH}`;
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';

let scratch: Scratch;
let store: RevisionStore;
let git: GitRepository;
let pushes: SqliteAttributedPushes;
let repository: string;
let policy: EffectivePolicy;
let files: number;
beforeEach(async () => {
  files = 0;
  scratch = await scratchRepository();
  git = await openRepository(scratch.path);
  pushes = new SqliteAttributedPushes(':memory:');
  policy = { ...DEFAULT_POLICY, hostUsers: hostUsersOf('anna-h=anna\nberta-h=berta\n') };
  const trust = await trustOf(git, scratch.path, MAIN_LAYOUT, { ...serverTrust, pushes });
  ({ store } = await scratch.open({ ...trust, policyFor: () => policy }));
  repository = trust.trust.repository;
});
afterEach(async () => {
  await git.close();
  await scratch[Symbol.asyncDispose]();
  pushes.close();
});

/** One commit with plain git. */
const commit = async () => {
  files += 1;
  const content = { 'shop/Kptfile': KPTFILE, [`shop/${files}.yaml`]: `# ${files}\n` };
  const oid = await commitFiles(git, content, scratch.clock.now(), { branch: BRANCH, from: 'refs/heads/main' });
  await store.repository('packages').refresh();
  return oid;
};

function report(user: string, before: string | undefined, after: string, ref = REF): void {
  const place = { repository, registration: 'default/packages', ref };
  pushes.note({ ...place, before, after, user, provider: 'gitea', at: '2026-01-02T03:04:05Z' });
}

const contributors = async () => (await store.evaluate(NAME)).record.contributors ?? [];
const names = async () => (await contributors()).map(({ name }) => name);

describe('a report', () => {
  test('counts for all commits between both ends of the push', async () => {
    const first = await commit();
    await commit();
    const last = await commit();
    report('berta-h', first, last);
    expect(await contributors()).toMatchObject([
      { name: 'push', commits: [first] },
      { name: 'berta', face: 'git', attributedBy: 'gitea:berta-h' },
    ]);
    report('anna-h', undefined, first);
    expect(await names()).toEqual(['anna', 'berta']);
  });

  test('counts for the tip alone where the push began elsewhere', async () => {
    const [first, last] = [await commit(), await commit()];
    report('anna-h', 'f'.repeat(40), last);
    expect(await contributors()).toMatchObject([{ name: 'push', commits: [first] }, { name: 'anna' }]);
  });

  test('of a user who is not listed leaves a pusher unknown beside one who is', async () => {
    const tip = await commit();
    report('anna-h', undefined, tip);
    report('mallory', undefined, tip);
    expect(await names()).toEqual(['push', 'anna']);
  });

  test('counts while the Repository enables it, and permanently once it is in a record', async () => {
    report('anna-h', undefined, await commit());
    const { hostUsers, ...without } = policy;
    policy = without;
    expect(await names()).toEqual(['push']);
    policy = { ...without, hostUsers };
    await store.change(NAME, { metadata: { labels: { a: 'b' } } }, robot);
    policy = without;
    expect(await names()).toEqual(['anna']);
  });

  test('counts after a record was written, which then names the person', async () => {
    const tip = await commit();
    await store.change(NAME, { metadata: { labels: { a: 'b' } } }, robot);
    expect(store.get(NAME).record?.contributors).toMatchObject([{ name: 'push', commits: [tip] }]);
    report('anna-h', undefined, tip);
    expect(await names()).toEqual(['anna']);
    const before = store.get(NAME).recordOid;
    await store.change(NAME, { recordPush: true }, robot);
    expect(store.get(NAME).record?.contributors).toMatchObject([{ name: 'anna', attributedBy: 'gitea:anna-h' }]);
    await store.change(NAME, { recordPush: true }, robot);
    expect(store.get(NAME).recordOid).not.toBe(before);
    const after = store.get(NAME).recordOid;
    await store.change(NAME, { recordPush: true }, robot);
    expect(store.get(NAME).recordOid).toBe(after);
  });

  test('does not count for a branch that was rewritten, nor for one whose record was lost', async () => {
    await commit();
    await store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
    await scratch.git('update-ref', '-d', REF);
    const tip = await commit();
    report('anna-h', undefined, tip);
    expect((await contributors()).find(({ name }) => name === 'push')?.commits).toBeUndefined();
    expect(await names()).toContain('push');
    await scratch.git('update-ref', '-d', 'refs/sluice/records/shop/v1');
    await store.repository('packages').refresh();
    expect(await names()).toContain('push');
  });
});

test('a person who changed the package through Sluice too is one contributor', async () => {
  await store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  const before = store.get(NAME).commit;
  report('anna-h', before, await commit());
  expect(await contributors()).toMatchObject([{ name: 'anna', face: 'cli' }]);
});

test('of more commits than a record lists, and where one is not known, nothing makes the pushers known', () => {
  const add = (contributors: readonly Contributor[], commit: string | undefined) =>
    withUnknownPusher(contributors, { since: '2026-01-02T03:04:05Z', tip: commit ?? 'tip', commit });
  let all: readonly Contributor[] = [];
  for (let count = 0; count < 100; count += 1) all = add(all, `${count}`);
  expect(all[0]?.commits).toHaveLength(100);
  expect(add(all, '7')).toBe(all);
  const more = add(all, '100');
  expect(more).toMatchObject([{ name: 'push', commit: '0' }]);
  expect(more[0]?.commits).toBeUndefined();
  expect(add(more, '101')[0]?.commits).toBeUndefined();
  expect(add(add([], 'a'), undefined)[0]?.commits).toBeUndefined();
});

test('for conditions of functions, a person whom only the host names is an unknown pusher', () => {
  const since = '2026-01-02T03:04:05Z';
  const issuers = pipelineIssuers([
    { name: 'anna', face: 'cli', since },
    { name: 'berta', face: 'git', since, attributedBy: 'gitea:berta-h' },
  ]);
  expect(issuers).toEqual([
    { name: 'anna', face: 'cli' },
    { name: 'push', face: 'git' },
  ]);
});

test('where another namespace has registered the same packages, no report counts', () => {
  const own = { ...DEFAULT_POLICY, hostUsers: hostUsersOf('a=anna\n') };
  expect(combinePolicies(own, own, { namespace: 'other', isSameBranch: true }).hostUsers).toBeUndefined();
});
