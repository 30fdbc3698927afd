import { describe, expect, test } from 'vitest';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { outcomeOf } from '../../../test/support/shop.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../model/policy/review-policy.ts';
import type { MergedProposal } from '../model/revision/revision-state.ts';
import type { MergedFacts } from '../plan/merged-facts.ts';
import type { RevisionStore } from './revision-store.ts';

const bob: RequestContext = { actor: { name: 'bob' }, face: 'api', reason: 'merged on the host' };
const NAME = 'packages.shop.merge-7';
const EVIDENCE = 'https://git.example.com/packages/pulls/7';
const REVIEWED = { type: REVIEWED_TYPE, status: 'True', reason: 'NoChangesRequested' } as const;
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const TESTED = 'status:\n  conditions:\n    - type: tested\n      status: "True"\n';
const GATED: Partial<EffectivePolicy> = {
  requiredGates: [{ conditionType: 'tested', approveOnly: false, policy: 'p' }],
};

/** A commit on the main branch, as a merge on the host makes it. */
async function merge(scratch: Scratch, files: Readonly<Record<string, string | null>>): Promise<string> {
  const git = await openRepository(scratch.path);
  const commit = await commitFiles(git, files, scratch.clock.now());
  await git.close();
  return commit;
}

function publish(
  store: RevisionStore,
  commit: string,
  {
    facts = {},
    workspace = 'merge-7',
    ...more
  }: { facts?: Partial<MergedFacts>; workspace?: string } & Partial<MergedProposal> = {},
) {
  return store.publishMerged(
    'packages',
    {
      ...{ package: 'shop', workspace, merged: { commit, ...more } },
      facts: { conditions: [], rendering: undefined, mayIssue: true, isOfHead: true, ...facts },
    },
    EVIDENCE,
    bob,
  );
}

async function open(scratch: Scratch, policy: Partial<EffectivePolicy> = {}) {
  return scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, ...policy }) });
}

describe('a package that the pull request of a user brought to the main branch', () => {
  test('is published at the commit of the merge by one tag, once, and is in band for others', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await open(scratch);
    const commit = await merge(scratch, { 'shop/Kptfile': KPTFILE, 'shop/a.yaml': 'a: 1\n' });
    await merge(scratch, { 'shop/a.yaml': 'a: 2\n' });
    await repository.refresh();
    expect(store.get('packages.shop.main').outOfBand?.reason).toBe('NotPublished');
    await publish(store, commit);
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', revision: 1, commit, outOfBand: undefined });
    const refs = await scratch.git(
      'for-each-ref',
      '--format=%(refname)',
      'refs/heads',
      'refs/tags',
      'refs/sluice/records',
    );
    expect(refs.split('\n')).toEqual(['refs/heads/main', 'refs/tags/shop/v1']);
    const tag = store.get(NAME).refOid;
    await publish(store, commit);
    expect(store.get(NAME).refOid).toBe(tag);
    const later = await open(scratch);
    await later.repository.checked();
    expect(later.store.get(NAME)).toMatchObject({ commit, outOfBand: undefined });
    await publish(later.store, commit);
    expect(later.store.list({ repository: 'packages' }).map(({ name }) => name)).toEqual(['packages.shop.main', NAME]);
    // What a direct push added later is not part of it.
    expect(later.store.get('packages.shop.main').outOfBand?.reason).toBe('MainDiffers');
  });

  test('has the conditions of the pull request as its own, by the one who may issue them', async () => {
    await using scratch = await scratchRepository();
    const policy: Partial<EffectivePolicy> = {
      requiredGates: [{ conditionType: REVIEWED_TYPE, approveOnly: true, policy: 'p' }],
      givers: [{ conditionType: REVIEWED_TYPE, actors: [REVIEW_ACTOR], policy: 'p' }],
    };
    const { store, repository } = await open(scratch, policy);
    // A Kptfile that sets it itself opens nothing.
    const forged = KPTFILE + TESTED.replace('tested', REVIEWED_TYPE);
    const commit = await merge(scratch, { 'shop/Kptfile': forged });
    await repository.refresh();
    expect(await outcomeOf(publish(store, commit))).toMatch(/^Refused: gate sluice.dev\/Reviewed is closed/);
    const conditions = [{ ...REVIEWED, status: 'False' as const, message: 'carl requests changes' }];
    expect(await outcomeOf(publish(store, commit, { facts: { conditions } }))).toContain('carl requests changes');
    await publish(store, commit, { facts: { conditions: [REVIEWED] } });
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    const { record } = await store.evaluate(NAME);
    expect(record.verdicts).toEqual([expect.objectContaining({ type: REVIEWED_TYPE, by: REVIEW_ACTOR })]);
  });

  test('with a closed gate is refused, or recorded out of band; conditions of others than pushers open nothing', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await open(scratch, GATED);
    const commit = await merge(scratch, { 'shop/Kptfile': KPTFILE + TESTED });
    await repository.refresh();
    const before = await scratch.git('for-each-ref');
    const facts = { mayIssue: false };
    expect(await outcomeOf(publish(store, commit, { facts }))).toMatch(/^Refused: gate tested is closed/);
    expect(await scratch.git('for-each-ref')).toBe(before);
    await publish(store, commit, { facts, recordBypass: true });
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: { reason: 'GateUnmet' } });
    await publish(store, commit, { facts, recordBypass: true });
    expect(await scratch.git('tag', '--list')).toBe('shop/v1');
    const again = `${KPTFILE}${TESTED}      message: again\n`;
    const other = await merge(scratch, { 'shop/Kptfile': again, 'shop/a.yaml': 'a: 1\n' });
    await repository.refresh();
    await publish(store, other, { workspace: 'merge-8' });
    expect(store.get('packages.shop.merge-8')).toMatchObject({ revision: 2, outOfBand: undefined });
  });

  test('whose merger may not approve is refused, or recorded as not approved; reviews are approvals of its content', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await open(scratch, { forbidSelfApproval: true });
    const commit = await merge(scratch, { 'shop/Kptfile': KPTFILE });
    await repository.refresh();
    // Its author is not known.
    expect(await outcomeOf(publish(store, commit))).toContain('1 of 2 approvals');
    const notApproved = 'eve merged it';
    expect(await outcomeOf(publish(store, commit, { notApproved }))).toContain('eve merged it');
    const approvals = [{ subject: 'carl', at: '2026-01-01T00:00:00Z', evidence: `${EVIDENCE}#1` }];
    await publish(store, commit, { approvals });
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(store.get(NAME).tip.facts.statement?.statement.record.approvals).toMatchObject([
      { subject: 'carl', evidence: `${EVIDENCE}#1` },
      { subject: 'bob', evidence: EVIDENCE },
    ]);
    const other = await merge(scratch, { 'shop/a.yaml': 'a: 1\n' });
    await repository.refresh();
    await publish(store, other, { workspace: 'merge-8', notApproved, recordBypass: true });
    expect(store.get('packages.shop.merge-8').outOfBand?.message).toContain('eve merged it');
  });

  test('below a later publication and after its deletion gets no revision', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await open(scratch);
    const first = await merge(scratch, { 'shop/Kptfile': KPTFILE });
    const second = await merge(scratch, { 'shop/a.yaml': 'a: 2\n' });
    await repository.refresh();
    await publish(store, second, { workspace: 'merge-8' });
    expect(await outcomeOf(publish(store, first))).toMatch(
      /^Refused: .* packages.shop.merge-8 was published at a later/,
    );
    expect(await outcomeOf(publish(store, 'f'.repeat(40)))).toMatch(/^NotFound: /);
    const third = await merge(scratch, { 'shop/a.yaml': 'a: 3\n' });
    await repository.refresh();
    await store.update('packages.shop.merge-8', { action: 'propose-deletion' }, anna);
    await store.update('packages.shop.merge-8', { action: 'delete' }, anna);
    expect(await outcomeOf(publish(store, second, { workspace: 'merge-8' }))).toContain('existed and was deleted');
    await publish(store, third, { workspace: 'merge-10' });
    expect(store.get('packages.shop.merge-10')).toMatchObject({ lifecycle: 'Published', commit: third });
  });
});
