import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findingsOf } from '../../../controllers/repository/findings.ts';
import { readRef } from '../../../test/support/git/git-cli.ts';
import { type MergeStyle, mergeOnHost as mergeHead } from '../../../test/support/git/merge-on-host.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft, outcomeOf } from '../../../test/support/shop.ts';
import { MAIN_LAYOUT, newServerTrust, newSigner, serverTrust, trustOf } from '../../../test/support/trust.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository } from '../../git/git-repository.ts';
import { initRepository, openRepository } from '../../git/open/open-repository.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { sshSigner } from '../../git/signing/ssh-signer.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { explainRevision } from '../api/explain/explain-revision.ts';
import { stateExplainer } from '../api/explain/explain-state.ts';
import { DEFAULT_POLICY } from '../model/policy/policy.ts';
import { ReadOnlyLedger } from '../verify/read-only-ledger.ts';
import { verifyRepository } from '../verify/verify-repository.ts';
import { RevisionStore } from './revision-store.ts';

const bob: RequestContext = { actor: { name: 'bob' }, face: 'api', reason: 'merged on the host' };
const NAME = 'packages.shop.v1';
const EVIDENCE = 'https://git.example.com/packages/pulls/7';

/** Merges the proposed branch as the button of a Git host does, after other commits on the main branch. Returns the commit. */
function mergeOnHost({ path }: Scratch, style: MergeStyle = 'merge', branch = 'proposed/shop/v1'): string {
  return mergeHead(path, readRef(path, `refs/heads/${branch}`) ?? '', style, 7).commit;
}

/** A proposal, and a commit on the main branch that it does not have. */
async function propose(scratch: Scratch, store: RevisionStore): Promise<void> {
  expect(await draft(store)).toBe(NAME);
  await store.change(NAME, { files: new Map([['app.yaml', Buffer.from('a: 1\n')]]) }, anna);
  await store.update(NAME, { action: 'propose' }, anna);
  const git = await openRepository(scratch.path);
  await commitFiles(git, { 'README.md': 'changed\n' }, scratch.clock.now());
  await git.close();
}

async function tagsOf({ git }: Scratch): Promise<string[]> {
  return (await git('tag', '--list')).split('\n').filter((name) => name !== '');
}

async function verified({ path, git }: Scratch) {
  const repository = await openRepository(path);
  const ledger = ReadOnlyLedger.ofKeys(serverTrust.ledger.keys());
  const refs = await repository.listRefs();
  const result = await verifyRepository({ git: repository, layout: MAIN_LAYOUT, refs, ledger });
  await repository.close();
  expect(await git('fsck', '--strict', '--no-dangling')).toBe('');
  return result.verified.map(({ ref, finding }) => [ref, finding?.reason]);
}

describe('a proposal that the Git host merged', () => {
  test('is published at the commit of the host, whether that is a merge, a squash or a rebase', async () => {
    const published = [];
    for (const style of ['merge', 'squash', 'rebase'] as const) {
      await using scratch = await scratchRepository();
      const { store, repository } = await scratch.open();
      await propose(scratch, store);
      const commit = mergeOnHost(scratch, style);
      await repository.refresh();
      // Until it is recorded it is a proposal, and the main branch has what no revision published.
      expect(store.get(NAME).lifecycle).toBe('Proposed');
      expect(store.get('packages.shop.main').outOfBand?.reason).toBe('NotPublished');
      await store.update(NAME, { action: 'approve', merged: { commit }, evidence: EVIDENCE }, bob);
      const revision = store.get(NAME);
      expect(revision).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
      expect(store.get('packages.shop.main').outOfBand).toBeUndefined();
      expect(await scratch.git('rev-parse', 'main', 'shop/v1^{commit}')).toBe(`${commit}\n${commit}`);
      expect(await scratch.git('for-each-ref', '--format=%(refname)', 'refs/heads', 'refs/sluice/records')).toBe(
        'refs/heads/main',
      );
      const { record, content } = await store.evaluate(NAME);
      const approval = { subject: 'bob', face: 'api', evidence: EVIDENCE };
      expect(revision.tip.facts.statement?.statement.record.approvals).toEqual([expect.objectContaining(approval)]);
      expect(record.steps.at(-1)).toMatchObject({ action: 'approve', by: 'bob', reason: 'merged on the host' });
      expect((await store.history(NAME)).map(({ action }) => action)).toContain('approve');
      expect(await verified(scratch)).toContainEqual(['refs/tags/shop/v1', undefined]);
      published.push([revision.revision, content.content, revision.tip.tree]);
      // Another server, which knows the key and nothing else, sees the same.
      const signer = serverTrust.signer();
      const later = await scratch.open({ ...(await trustFor(scratch, newServerTrust(signer))) });
      await later.repository.checked();
      expect(later.store.get(NAME).outOfBand).toBeUndefined();
    }
    expect(new Set(published.map((one) => JSON.stringify(one))).size).toBe(1);
  });

  test('is published by a signed tag where the repository signs', async () => {
    await using scratch = await scratchRepository();
    const git = await openRepository(scratch.path, { signer: sshSigner(generateSshKey('test')) });
    const { store, repository } = await scratch.open({ git });
    await propose(scratch, store);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    await store.update(NAME, { action: 'approve', merged: { commit } }, bob);
    expect(await scratch.git('cat-file', 'tag', 'shop/v1')).toContain('\n-----BEGIN SSH SIGNATURE-----\n');
    expect(store.get(NAME)).toMatchObject({ commit, outOfBand: undefined });
    const later = await scratch.open();
    expect(later.store.get(NAME)).toMatchObject({ commit, outOfBand: undefined });
    expect(await verified(scratch)).toContainEqual(['refs/tags/shop/v1', undefined]);
  });

  test('is deleted as any publication, and its number is given again', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    for (const workspace of ['v1', 'v2']) {
      const name = await draft(store, 'shop', workspace);
      await store.change(name, { files: new Map([['app.yaml', Buffer.from(`a: ${workspace}\n`)]]) }, anna);
      await store.update(name, { action: 'propose' }, anna);
      const commit = mergeOnHost(scratch, 'merge', `proposed/shop/${workspace}`);
      await repository.refresh();
      const update = { action: 'approve', merged: { commit } } as const;
      const foreseen = await store.update(name, update, { ...bob, dryRun: true });
      expect(foreseen).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
      await store.update(name, update, bob);
      expect(store.get(name)).toMatchObject({ revision: 1, outOfBand: undefined });
      await store.update(name, { action: 'propose-deletion' }, anna);
      await store.update(name, { action: 'delete' }, anna);
      expect(store.find(name)).toBeUndefined();
      // The folder is removed too, so that the next draft is a new package.
      await store.update('packages.shop.main', { action: 'propose-deletion' }, anna);
      await store.update('packages.shop.main', { action: 'delete' }, anna);
      expect((await verified(scratch)).filter(([, reason]) => reason !== undefined)).toEqual([]);
    }
  });

  test('is refused, and nothing changes, if the commit is not a merge of it', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    await propose(scratch, store);
    const before = await scratch.git('for-each-ref');
    const approve = (commit: string) =>
      outcomeOf(store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, bob));
    await repository.refresh();
    const refused = `Refused: cannot publish the commit`;
    expect(await approve('1'.repeat(40))).toMatch(`the repository has no such commit as it was last read; try again`);
    expect(await approve('main')).toContain('the repository has no such commit');
    const proposed = await scratch.git('rev-parse', 'proposed/shop/v1');
    expect(await approve(proposed)).toContain(
      `${refused} ${proposed} as ${NAME}: it is not on the line of first parents`,
    );
    expect(await approve(await scratch.git('rev-parse', 'main~1'))).toContain(
      'it is the first commit of refs/heads/main',
    );
    expect(await approve(await scratch.git('rev-parse', 'main'))).toContain('its package is not the proposed one');
    expect(await scratch.git('for-each-ref')).toBe(before);
    // The proposal changes after the merge.
    const commit = mergeOnHost(scratch);
    await store.change(NAME, { conditions: [{ type: 'seen', status: 'True' }] }, anna);
    await repository.refresh();
    expect(await approve(commit)).toMatch(/its package is not the proposed one.* push the merged package to refs/);
    expect(await tagsOf(scratch)).toEqual([]);
  });
});

describe('a merge that bypassed the rules', () => {
  test('of gates is refused, or recorded out of band with the gates', async () => {
    await using scratch = await scratchRepository();
    const requiredGates = [{ conditionType: 'tested', approveOnly: true, policy: 'p' }];
    const { store, repository } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, requiredGates }) });
    await propose(scratch, store);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    const before = await scratch.git('for-each-ref');
    expect(await outcomeOf(store.update(NAME, { action: 'approve', merged: { commit } }, bob))).toMatch(
      /^Refused: gate tested is closed/,
    );
    expect(await scratch.git('for-each-ref')).toBe(before);
    await store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, bob);
    const revision = store.get(NAME);
    const message = 'the statement of shop/v1 lists closed gates, with which the Git host merged it: tested';
    expect(revision).toMatchObject({ lifecycle: 'Published', commit, outOfBand: { reason: 'GateUnmet', message } });
    expect(await verified(scratch)).toContainEqual(['refs/tags/shop/v1', 'GateUnmet']);
    await expectReported(store, message);
    const again = { action: 'approve', merged: { commit, recordBypass: true } } as const;
    expect(await store.update(NAME, again, bob)).toMatchObject({ commit });
    expect(await tagsOf(scratch)).toEqual(['shop/v1']);
  });

  test('of a condition that was issued for earlier content does not issue it for the content that it publishes', async () => {
    await using scratch = await scratchRepository();
    const requiredGates = [{ conditionType: 'tested', approveOnly: true, policy: 'p' }];
    const { store, repository } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, requiredGates }) });
    expect(await draft(store)).toBe(NAME);
    await store.change(NAME, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    await store.change(NAME, { files: new Map([['app.yaml', Buffer.from('a: 2\n')]]) }, anna);
    await store.update(NAME, { action: 'propose' }, anna);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    await store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, bob);
    expect(store.get(NAME).outOfBand?.reason).toBe('GateUnmet');
    const source = { type: 'copy', source: NAME } as const;
    const { name } = await store.create('packages', { package: 'shop', workspace: 'v2', source }, anna);
    expect((await store.evaluate(name)).gates).toMatchObject([{ type: 'tested', state: 'Stale' }]);
  });

  test('of a condition that is recorded as True and false now is out of band too', async () => {
    await using scratch = await scratchRepository();
    const requiredGates = [{ conditionType: 'tested', approveOnly: true, policy: 'p' }];
    const { repository } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, requiredGates }) });
    const store = new RevisionStore({ approvalProblem: async () => ({ type: 'tested', message: 'not any more' }) });
    await store.add(repository);
    expect(await draft(store)).toBe(NAME);
    await store.change(NAME, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    await store.update(NAME, { action: 'propose' }, anna);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    expect(await outcomeOf(store.update(NAME, { action: 'approve', merged: { commit } }, bob))).toContain('closed now');
    await store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, bob);
    expect(store.get(NAME).outOfBand?.reason).toBe('GateUnmet');
  });

  test.each<[string, RequestContext, string]>([
    ['by the proposer', anna, 'anna proposed packages.shop.v1 and must not approve it; another user has to'],
    [
      'by a controller',
      { actor: { name: 'controller:pull-request' }, face: 'controller' },
      'controller:pull-request is a controller and must not approve packages.shop.v1, which a policy reserves for users; a user has to',
    ],
  ])('of approvals, %s, is refused, or recorded out of band with the reason', async (_, context, why) => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open({
      policyFor: () => ({ ...DEFAULT_POLICY, forbidSelfApproval: true }),
    });
    await propose(scratch, store);
    const commit = mergeOnHost(scratch, 'squash');
    await repository.refresh();
    const merged = { commit };
    expect(await outcomeOf(store.update(NAME, { action: 'approve', merged }, context))).toBe(`Refused: ${why}`);
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    await store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, context);
    const message = `the Git host merged shop/v1 without the required approvals, by its statement: ${why}`;
    expect(store.get(NAME).outOfBand).toEqual({ reason: 'NotApproved', message });
    expect(await verified(scratch)).toContainEqual(['refs/tags/shop/v1', 'NotApproved']);
    await expectReported(store, message);
  });

  test('an approval that is not enough leaves the proposal as it is, and further ones make it a publication', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open({
      policyFor: () => ({ ...DEFAULT_POLICY, forbidSelfApproval: true }),
    });
    await propose(scratch, store);
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/b.yaml': 'b: 1\n' }, scratch.clock.now(), { branch: 'proposed/shop/v1' });
    await git.close();
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    const carol: RequestContext = { actor: { name: 'carol' }, face: 'api' };
    const approve = (context: RequestContext) =>
      outcomeOf(store.update(NAME, { action: 'approve', merged: { commit } }, context));
    const refs = await scratch.git('for-each-ref');
    expect(await approve(bob)).toBe(
      `Refused: ${NAME} was merged with 1 of 2 approvals; other users have to approve it`,
    );
    expect(await scratch.git('for-each-ref')).toBe(refs);
    // The approval itself counts for the proposal.
    await store.update(NAME, { action: 'approve' }, bob);
    expect(await approve(carol)).toBe('succeeded');
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
  });

  test('with a policy that lets the actor break the glass is in band, as without a merge', async () => {
    await using scratch = await scratchRepository();
    const requiredGates = [{ conditionType: 'tested', approveOnly: true, policy: 'p' }];
    const policy = { ...DEFAULT_POLICY, requiredGates, breakGlass: ['bob'] };
    const { store, repository } = await scratch.open({ policyFor: () => policy });
    await propose(scratch, store);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    await store.update(NAME, { action: 'approve', merged: { commit }, breakGlass: true }, bob);
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });
});

describe('a repeated request', () => {
  test('by a second process finds the tag, also where both began at the same time', async () => {
    await using scratch = await scratchRepository();
    const one = await scratch.open();
    await propose(scratch, one.store);
    const commit = mergeOnHost(scratch);
    await one.repository.refresh();
    const two = await scratch.open();
    const approve = (store: RevisionStore) => store.update(NAME, { action: 'approve', merged: { commit } }, bob);
    const both = await Promise.all([approve(one.store), approve(two.store)]);
    expect(both.map((revision) => revision?.commit)).toEqual([commit, commit]);
    expect(both[0]?.refOid).toBe(both[1]?.refOid);
    const later = await scratch.open();
    expect((await approve(later.store))?.refOid).toBe(both[0]?.refOid);
    expect(await tagsOf(scratch)).toEqual(['shop/v1']);
    // Of another commit it is none.
    const other = { action: 'approve', merged: { commit: await scratch.git('rev-parse', 'main~1') } } as const;
    expect(await outcomeOf(later.store.update(NAME, other, bob))).toContain('only Proposed packages can be approved');
  });

  test('by a second process with a mirror of its own finds the tag of the first one', async () => {
    await using scratch = await scratchRepository();
    const first = await scratch.open();
    await propose(scratch, first.store);
    const commit = mergeOnHost(scratch);
    const mirrors = ['one', 'two'].map((name) => initRepository(join(scratch.folder, `${name}.git`)));
    const [one, two] = await Promise.all(mirrors.map(async (git) => openMirror(scratch, await git)));
    const update = { action: 'approve', merged: { commit } } as const;
    const both = await Promise.all([one?.store.update(NAME, update, bob), two?.store.update(NAME, update, bob)]);
    const tag = await scratch.git('rev-parse', 'refs/tags/shop/v1');
    expect(both.map((revision) => revision?.refOid)).toEqual([tag, tag]);
    expect(await tagsOf(scratch)).toEqual(['shop/v1']);
  });

  test('after the process ended between the push and its notes finds the tag', async () => {
    await using scratch = await scratchRepository();
    const signer = newSigner();
    const own = await scratch.open(await trustFor(scratch, newServerTrust(signer)));
    await propose(scratch, own.store);
    const commit = mergeOnHost(scratch);
    await own.repository.refresh();
    const before = await trustFor(scratch, newServerTrust(signer));
    await own.store.update(NAME, { action: 'approve', merged: { commit } }, bob);
    const tag = await scratch.git('rev-parse', 'refs/tags/shop/v1');
    const { store } = await scratch.open(before);
    const again = await store.update(NAME, { action: 'approve', merged: { commit } }, bob);
    expect(again).toMatchObject({ refOid: tag, outOfBand: undefined });
  });

  test.each(
    ['writeTag', 'writeCommit', 'transaction'].flatMap((step) => [
      [step, 'before'],
      [step, 'after'],
    ]),
  )('after the process ended at %s, %s it was done, publishes once', async (step, when) => {
    await using scratch = await scratchRepository();
    const dying = { isOn: false, ended: false };
    const git = intercepted(await openRepository(scratch.path), async (name, call) => {
      if (dying.ended) throw new Error('the process has ended');
      const ends = dying.isOn && name === step;
      if (ends && when === 'after') await call();
      dying.ended ||= ends;
      if (ends) throw new Error('the process ended');
      return call();
    });
    const { store, repository } = await scratch.open({ git });
    await propose(scratch, store);
    // Its labels outlive the publication, so that it writes a record too.
    await store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    dying.isOn = true;
    const update = { action: 'approve', merged: { commit } } as const;
    await expect(store.update(NAME, update, bob)).rejects.toThrow('the process ended');
    const isDone = step === 'transaction' && when === 'after';
    expect(await tagsOf(scratch)).toEqual(isDone ? ['shop/v1'] : []);
    const next = await scratch.open();
    expect(await next.store.update(NAME, update, bob)).toMatchObject({ revision: 1, commit, outOfBand: undefined });
    expect(next.store.get(NAME).record?.labels).toEqual({ a: 'b' });
    expect(await tagsOf(scratch)).toEqual(['shop/v1']);
    expect((await verified(scratch)).filter(([, reason]) => reason !== undefined)).toEqual([]);
    dying.ended = false;
    dying.isOn = false;
  });

  test('after the response of the push was lost finds the tag', async () => {
    await using scratch = await scratchRepository();
    const first = await scratch.open();
    await propose(scratch, first.store);
    const commit = mergeOnHost(scratch);
    const broken = { isOn: false };
    const git = intercepted(await initRepository(join(scratch.folder, 'mirror.git')), async (name, call) => {
      if (broken.isOn && name === 'pushOutcome') throw new SluiceError('Unavailable', 'the remote is away');
      const result = await call();
      if (broken.isOn && name === 'push')
        throw new SluiceError('Timeout', 'the response was lost', { details: { outcome: 'unknown' } });
      return result;
    });
    const { store } = await openMirror(scratch, git);
    broken.isOn = true;
    const update = { action: 'approve', merged: { commit } } as const;
    expect(await outcomeOf(store.update(NAME, update, bob))).toContain('the response was lost');
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    broken.isOn = false;
    const tag = await scratch.git('rev-parse', 'refs/tags/shop/v1');
    expect(await store.update(NAME, update, bob)).toMatchObject({ refOid: tag, outOfBand: undefined });
    expect(await tagsOf(scratch)).toEqual(['shop/v1']);
  });

  test('does not take a forged tag for the record of the merge', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    await propose(scratch, store);
    const commit = mergeOnHost(scratch);
    await repository.refresh();
    const update = { action: 'approve', merged: { commit } } as const;
    await store.update(NAME, update, bob);
    // The same statement with a closed gate, by a client that has no key.
    const gate = '"gates":[{"requiredBy":["Kptfile"],"state":"Missing","type":"x"}]';
    const text = (await scratch.git('cat-file', 'tag', 'shop/v1')).replace('"gates":[]', gate);
    expect(text).toContain(gate);
    const file = join(scratch.folder, 'tag');
    await writeFile(file, `${text}\n`);
    const forged = await scratch.git('hash-object', '-t', 'tag', '-w', file);
    await scratch.git('update-ref', 'refs/tags/shop/v1', forged);
    const other = await scratch.open(await trustFor(scratch, newServerTrust(serverTrust.signer())));
    expect(other.store.get(NAME).outOfBand?.reason).toBe('GateUnmet');
    expect(await outcomeOf(other.store.update(NAME, update, bob))).toContain('only Proposed packages can be approved');
  });
});

/** A repository whose calls pass through a function, which can let them fail. */
function intercepted(
  target: GitRepository,
  through: (name: string, call: () => Promise<unknown>) => Promise<unknown>,
): GitRepository {
  return new Proxy(target, {
    get(_, name: string) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => through(name, async () => Reflect.apply(value, target, args));
    },
  });
}

/** A process with a mirror of the repository, up to date with it. */
async function openMirror(scratch: Scratch, git: GitRepository) {
  const remote = { url: `file://${scratch.path}` };
  const trust = await trustOf(git, scratch.path, MAIN_LAYOUT, serverTrust, remote, scratch.clock);
  const opened = await scratch.open({ ...trust, git, remote });
  await opened.repository.sync();
  return opened;
}

async function trustFor(scratch: Scratch, server: Parameters<typeof trustOf>[3]) {
  const git = await openRepository(scratch.path);
  return { git, ...(await trustOf(git, scratch.path, MAIN_LAYOUT, server, undefined, scratch.clock)) };
}

/** The explanation of the revision, and the finding about its tag, have the reason. */
async function expectReported(store: RevisionStore, message: string): Promise<void> {
  const revision = store.get(NAME);
  const surroundings = { resolvers: [], disabled: [], running: false, now: 0, actor: 'anna' };
  const { reasons, next } = await explainRevision(store, revision, [stateExplainer(store)], surroundings);
  const why = expect.stringMatching(/^it did not come through the gates \((GateUnmet|NotApproved)\): /);
  expect(reasons).toContainEqual({ reason: 'OutOfBand', message: why });
  expect(reasons.map((one) => one.message).join()).toContain(message);
  expect(next).toEqual(['sluice repo adopt packages']);
  const found = await findingsOf(store.repository('packages'), [{ before: undefined, after: revision }]);
  expect(found).toContainEqual(expect.objectContaining({ kind: 'Published', inBand: false, message }));
}
