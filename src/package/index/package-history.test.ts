import { expect, test } from 'vitest';
import { layout, NAME, RECORD, server, setUp, T } from '../../../test/support/trusted-index.ts';
import type { Oid } from '../../git/git-repository.ts';
import { recordRef, tombstoneRef } from '../model/identity/layout.ts';
import { emptyRecord } from '../model/record/record.ts';
import { publicationDigest, publicationScope } from '../trust/ledger/publication-mark.ts';
import type { RevisionIndex } from './revision-index.ts';

type Repository = Awaited<ReturnType<typeof setUp>>;

/** Publications of one package, on a main branch that holds all of them. */
async function publish(at: Repository, count: number): Promise<Oid[]> {
  const base = await at.scratch.git('rev-parse', 'main');
  const commits: Oid[] = [];
  for (let number = 1; number <= count; number += 1) {
    const commit = await at.approval(number, [commits.at(-1) ?? base, base]);
    await at.set(`refs/tags/shop/v${number}`, commit);
    commits.push(commit);
  }
  await at.set('refs/heads/main', commits.at(-1));
  return commits;
}

/** Counts what is read of the ledger, and the signatures that are checked: both once or more for each publication that is evaluated. */
function counted({ ledger, trust }: ReturnType<typeof server>) {
  const counts = { marks: 0, checked: 0 };
  const { mark } = ledger;
  ledger.mark = (scope) => {
    counts.marks += 1;
    return mark.call(ledger, scope);
  };
  const { distrustOfSigner } = trust;
  trust.distrustOfSigner = (signer) => {
    counts.checked += 1;
    return distrustOfSigner.call(trust, signer);
  };
  return counts;
}

const reasonOf = (index: RevisionIndex, revision: number) =>
  index.ofPackage('shop').find((row) => row.revision === revision)?.outOfBand?.reason ?? 'in band';

test('an edit evaluates no other publication', async () => {
  const costs: unknown[] = [];
  for (const count of [3, 60]) {
    await using at = await setUp();
    const commits = await publish(at, count);
    const one = server(at.git);
    await one.refresh();
    const counts = counted(one);
    const last = commits.at(-1) ?? '';
    let sequence = 1;
    const edits: [string, () => Promise<unknown>][] = [
      ['a draft', async () => at.set('refs/heads/drafts/shop/v1', await at.commit('edited\n', [last]))],
      ['a record', async () => at.set(RECORD, await at.record(++sequence))],
      ['a proposed deletion', () => at.set('refs/heads/deletionProposed/shop/v2', commits[1])],
      [
        'a record of a publication',
        async () => at.set(recordRef(layout, 'shop', 'w2'), await at.record(2, 'own', { workspace: 'w2' })),
      ],
      [
        'a new publication',
        async () => {
          const next = await at.approval(count + 1, [last, last]);
          await at.set('refs/heads/main', next);
          await at.set(`refs/tags/shop/v${count + 1}`, next);
        },
      ],
      ['the last one goes', () => at.set(`refs/tags/shop/v${count + 1}`, undefined)],
    ];
    const cost: Record<string, unknown> = {};
    for (const [what, edit] of edits) {
      await edit();
      Object.assign(counts, { marks: 0, checked: 0 });
      await one.refresh();
      expect(counts.marks).toBeGreaterThan(0);
      cost[what] = { ...counts };
      expect(await one.index.reassess()).toEqual([]);
    }
    expect(one.index.ofPackage('shop').filter(({ latest }) => latest)).toMatchObject([{ revision: count }]);
    costs.push(cost);
  }
  expect(costs[1]).toEqual(costs[0]);
});

test('the highest publication that counts is the latest, after removals and restorations', async () => {
  await using at = await setUp();
  const commits = await publish(at, 4);
  const { index, refresh } = server(at.git);
  await refresh();
  const latest = () => index.ofPackage('shop').flatMap((row) => (row.latest ? row.revision : []));
  const tag = (revision: number) => `refs/tags/shop/v${revision}`;
  const steps: [number, boolean, number[]][] = [
    [2, false, [4]],
    [4, false, [3]],
    [3, false, [1]],
    [4, true, [4]],
    [1, false, [4]],
    [4, false, []],
    [2, true, [2]],
  ];
  for (const [revision, isThere, expected] of steps) {
    await at.set(tag(revision), isThere ? commits[revision - 1] : undefined);
    await refresh();
    expect(latest()).toEqual(expected);
  }
});

test('a mark that is raised without a change of its ref is read at the next sync', async () => {
  await using at = await setUp();
  const [first = ''] = await publish(at, 3);
  const { index, refresh, ledger } = server(at.git);
  await refresh();
  const scope = { ...publicationScope('shop', 'v2'), repository: 'id' };
  ledger.raise([
    { scope, sequence: 1, digest: publicationDigest({ commit: first, statementTag: undefined }), proven: true },
  ]);
  await at.set('refs/heads/drafts/other/v1', await at.commit('another\n'));
  const changes = await refresh();
  expect(changes.map(({ after }) => after?.revision)).toContain(2);
  expect([1, 2, 3].map((revision) => reasonOf(index, revision))).toEqual(['in band', 'RolledBack', 'in band']);
});

test('a tombstone concerns its publication, also where its deletion is known before', async () => {
  await using at = await setUp();
  const [, second = ''] = await publish(at, 3);
  const one = server(at.git);
  await one.refresh();
  const deleted = await at.record(2, 'own', { workspace: 'w2', record: { ...emptyRecord(second), deleted: 'v2' } });
  await at.set(tombstoneRef(layout, 'shop', 'v2'), deleted);
  // Another server on the same ledger.
  await server(at.git, { ledger: one.ledger }).refresh();
  expect(reasonOf(one.index, 2)).toBe('in band');
  await one.refresh();
  expect(reasonOf(one.index, 2)).toBe('RolledBack');
});

test('keys that changed are noticed by every package that is touched, before all are evaluated again', async () => {
  await using at = await setUp();
  await publish(at, 3);
  const { index, refresh, ledger } = server(at.git);
  await refresh();
  ledger.revokeKey('own', T);
  await at.set('refs/heads/drafts/shop/v1', await at.commit('edited\n'));
  await refresh();
  expect([1, 2, 3].map((revision) => reasonOf(index, revision))).toEqual(Array(3).fill('RevokedKey'));
  expect(index.get(NAME)?.lifecycle).toBe('Draft');
});
