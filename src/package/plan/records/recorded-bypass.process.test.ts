import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRef } from '../../../../test/support/git/git-cli.ts';
import { mergeOnHost } from '../../../../test/support/git/merge-on-host.ts';
import { anna, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft } from '../../../../test/support/shop.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { explainRevision } from '../../api/explain/explain-revision.ts';
import { stateExplainer } from '../../api/explain/explain-state.ts';
import { DEFAULT_POLICY } from '../../model/policy/policy.ts';
import { REVIEW_ACTOR } from '../../model/policy/review-policy.ts';
import type { RevisionStore } from '../../store/revision-store.ts';

const NAME = 'packages.shop.v1';
const WHO = 'https://git.example.com/packages/pulls/7 was merged by owner';
const SETTING = 'SLUICE_ALLOW_GIT_HOST=git.example.com:443';

async function explain(store: RevisionStore) {
  const surroundings = { resolvers: [], disabled: [], running: false, now: 0, actor: 'anna' };
  const { last, reasons, next } = await explainRevision(
    store,
    store.get(NAME),
    [stateExplainer(store, () => SETTING)],
    surroundings,
  );
  const all = reasons.map(({ reason, message }) => `${reason}: ${message}`);
  return { last, next, all, merges: reasons.filter(({ reason }) => reason === 'MergedOnHost') };
}

test.each<[string, RequestContext, string]>([
  [
    'a user of the host',
    { actor: { name: REVIEW_ACTOR }, face: 'controller', reason: WHO },
    'the Git host (controller)',
  ],
  ['a mapped user', { actor: { name: 'bob' }, face: 'api', reason: WHO }, 'bob (api)'],
])('a bypass names the pull request and %s, if its statement is signed', async (_, context, by) => {
  await using scratch = await scratchRepository();
  const requiredGates = [{ conditionType: 'tested', approveOnly: true, policy: 'p' }];
  const { store, repository } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, requiredGates }) });
  const merge = async () => (await store.history(NAME, 20)).find(({ commit }) => commit === store.get(NAME).commit);
  expect(await draft(store)).toBe(NAME);
  await store.update(NAME, { action: 'propose' }, anna);
  const { commit } = mergeOnHost(scratch.path, readRef(scratch.path, 'refs/heads/proposed/shop/v1') ?? '', 'squash', 7);
  await repository.refresh();
  await store.update(NAME, { action: 'approve', merged: { commit, recordBypass: true } }, context);
  expect(store.get(NAME).outOfBand?.reason).toBe('GateUnmet');
  const said = await explain(store);
  expect(said).toMatchObject({
    last: { action: 'merge', by: by.replace(/ \(\w+\)$/, '') },
    merges: [{ message: expect.stringContaining(WHO) }],
    next: ['sluice repo adopt packages', `set ${SETTING} for it, as it connects to the host itself`],
  });
  const entry = await merge();
  const bypassed = store.get(NAME).tip.statementTag ?? '';
  expect({ ...entry, by: `${entry?.by} (${entry?.face})` }).toMatchObject({ by, action: 'merge', reason: WHO });

  // The same statement with another user, by a client that has no key.
  const text = await scratch.git('cat-file', 'tag', 'shop/v1');
  const file = join(scratch.folder, 'tag');
  await writeFile(file, `${text.replaceAll('merged by owner', 'merged by mallory')}\n`);
  await scratch.git('update-ref', 'refs/tags/shop/v1', await scratch.git('hash-object', '-t', 'tag', '-w', file));
  await repository.refresh();
  expect(store.get(NAME).outOfBand?.reason).toBe('GateUnmet');
  expect(await explain(store)).toMatchObject({ last: { action: 'push' }, merges: [] });
  expect(await merge()).toMatchObject({ face: 'git', action: 'push' });

  // An operator adopts the merge as it was.
  await scratch.git('update-ref', 'refs/tags/shop/v1', bypassed);
  await repository.refresh();
  await repository.adopt(await repository.adoptable(), { actor: { name: 'admin' }, face: 'cli' });
  expect(store.get(NAME).outOfBand).toBeUndefined();
  expect(await explain(store)).toEqual({ ...said, next: [], all: expect.anything() });
  const { all } = await explain(store);
  expect(all).toContainEqual(expect.stringMatching(/^Adopted: it counts since it was adopted at \S+ \(says: admin\)$/));
  expect(all).toContainEqual(
    expect.stringMatching(/^GatesPassedBy: the Git host merged it while gates were closed: tested/),
  );
  expect(await merge()).toEqual(entry);
  expect(await store.history(NAME, 20)).toContainEqual(expect.objectContaining({ action: 'adopt', by: 'says: admin' }));
});
