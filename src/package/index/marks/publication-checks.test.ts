import { join } from 'node:path';
import { expect, test } from 'vitest';
import { layout, server, setUp } from '../../../../test/support/trusted-index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../../git/errors.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { tombstoneRef } from '../../model/identity/layout.ts';
import { emptyRecord } from '../../model/record/record.ts';
import { loadFactCache, saveFactCache } from '../facts/fact-file.ts';
import type { RevisionIndex } from '../revision-index.ts';
import { MAX_CHECKED_AT_ONCE } from '../trust/signature-checks.ts';

/** The same repository, but what reads a commit calls `before` first. */
function observed(git: GitRepository, before: (oid: Oid) => void): GitRepository {
  return new Proxy(git, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'readCommit')
        return async (oid: Oid) => {
          before(oid);
          return target.readCommit(oid);
        };
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Fails the first time that a commit is read, as after a time-out of a child process. */
function failingOnce(git: GitRepository, oid: Oid): GitRepository {
  let isLeft = true;
  return observed(git, (read) => {
    if (!isLeft || read !== oid) return;
    isLeft = false;
    throw new SluiceError('Timeout', 'git cat-file took too long');
  });
}

function reasonsOf(index: RevisionIndex): (readonly [number, string])[] {
  const rows = Array.from(
    index.all(),
    ({ revision, outOfBand }) => [revision, outOfBand?.reason ?? 'in band'] as const,
  );
  return rows.filter(([revision]) => revision > 0).sort(([a], [b]) => a - b);
}

test('a publication that is not on the main branch does not count after an error either', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  await at.set('refs/tags/shop/v3', await at.approval(3, [base, base]));
  const { index, refresh } = server(failingOnce(at.git, base));
  await expect(refresh()).rejects.toThrow('took too long');
  await refresh();
  expect(reasonsOf(index)).toEqual([[3, 'NotOnMain']]);
});

test('statements whose check failed are checked by the next call', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  let head = base;
  const changes: { name: string; before: undefined; after: Oid }[] = [];
  for (let number = 1; number <= MAX_CHECKED_AT_ONCE + 1; number += 1) {
    head = await at.approval(number, [head, base]);
    changes.push({ name: `refs/tags/shop/v${number}`, before: undefined, after: head });
  }
  await at.git.transaction([]);
  const { index } = server(failingOnce(at.git, head));
  await index.apply([...changes, { name: 'refs/heads/main', before: undefined, after: head }]);
  const run = async () => {
    for await (const packages of index.checkBacklog()) await index.reassess(packages);
  };
  await expect(run()).rejects.toThrow('took too long');
  expect(index.hasBacklog).toBe(true);
  await run();
  expect(new Set(reasonsOf(index).map(([, reason]) => reason))).toEqual(new Set(['in band']));
});

test('a damaged commit of the main branch is an error, not the end of it', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const first = await at.approval(1, [base, base]);
  const middle = await at.commit('by hand\n', [first]);
  await at.set('refs/heads/main', middle);
  await at.set('refs/tags/shop/v1', first);
  let isDamaged = true;
  const git = observed(at.git, (oid) => {
    if (isDamaged && oid === middle) throw new DamageError(`commit ${oid} cannot be read`);
  });
  const { index, refresh, origin } = server(git);
  await expect(refresh()).rejects.toThrow('cannot be read');
  const file = join(at.scratch.folder, 'cache');
  await saveFactCache(file, await index.liveFacts(), origin);
  isDamaged = false;
  await refresh();
  expect(reasonsOf(index)).toEqual([[1, 'in band']]);
  const restarted = server(git, { cache: (await loadFactCache(file, origin)).cache });
  await restarted.refresh();
  expect(reasonsOf(restarted.index)).toEqual([[1, 'in band']]);
});

test('the main branch is walked for what a trusted key signed, once as long as it stays where it is', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  let head = base;
  for (let number = 0; number < 50; number += 1) head = await at.commit(`${number}\n`, [head]);
  await at.set('refs/heads/main', head);
  let reads = 0;
  const git = observed(at.git, () => {
    reads += 1;
  });
  const { index, refresh, ledger } = server(git);
  await refresh();
  reads = 0;
  for (let number = 1; number <= 3; number += 1) {
    await at.set(`refs/tags/shop/v${number}`, await at.approval(number, [base, base], 'foreign'));
    await refresh();
  }
  expect(reads).toBe(0);
  expect(reasonsOf(index).map(([, reason]) => reason)).toEqual(Array(3).fill('UntrustedKey'));
  for (let number = 4; number <= 9; number += 1) {
    await at.set(`refs/tags/shop/v${number}`, await at.approval(number, [base, base]));
    await refresh();
  }
  expect(reads).toBeLessThan(2 * 50);
  expect(reasonsOf(index).slice(3)).toEqual([4, 5, 6, 7, 8, 9].map((number) => [number, 'NotOnMain']));
  // A key that is trusted later makes only what lies on the main branch count.
  const own = await at.approval(10, [head, base], 'foreign');
  await at.set('refs/heads/main', own);
  await at.set('refs/tags/shop/v10', own);
  await refresh();
  ledger.addKey({ fingerprint: 'foreign', publicKey: 'ssh-fake foreign', comment: '', origin: 'added', addedAt: '' });
  await index.reassess();
  expect(reasonsOf(index).filter(([number]) => number < 4 || number === 10)).toEqual([
    ...[1, 2, 3].map((number) => [number, 'NotOnMain']),
    [10, 'in band'],
  ]);
});

test('a publication that counts is shown, even if another tag claims its name', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const own = await at.approval(2, [base, base]);
  await at.set('refs/heads/main', own);
  await at.set('refs/tags/shop/v2', own);
  const { index, refresh } = server(at.git);
  await refresh();
  const claim = 'kpt:{"package":"shop","workspaceName":"w2","revision":"99"}';
  await at.set('refs/tags/shop/v99', await at.commit(`Approving package revision shop/99\n\n${claim}\n`, [own, base]));
  const changes = await refresh();
  expect(index.get('r.shop.w2')).toMatchObject({ revision: 2, outOfBand: undefined, hides: ['refs/tags/shop/v99'] });
  expect(changes.map(({ after }) => after?.ref)).toEqual(['refs/tags/shop/v2']);
});

test('a deletion that is found in Git counts in every ledger, and does not remove a later publication of that number', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const [first, tag] = [await at.approval(1, [base, base]), 'refs/tags/shop/v1'];
  const deletion = (key: string) =>
    at.record(2, key, { workspace: 'w1', record: { ...emptyRecord(first), deleted: 'v1' } });
  const tombstone = tombstoneRef(layout, 'shop', 'v1');
  await at.set('refs/heads/main', first);
  await at.set(tombstone, await deletion('own'));
  const one = server(at.git);
  await one.refresh();
  await at.set(tag, first);
  // A ledger that knew of the deletion before the tag came back, and one that finds both.
  const two = server(at.git);
  for (const { index, refresh } of [one, two]) {
    await refresh();
    expect(reasonsOf(index)).toEqual([[1, 'RolledBack']]);
  }
  // The number is given again.
  const second = await at.approval(1, [first, base]);
  await at.set('refs/heads/main', second);
  await at.set(tag, second);
  for (const { index, refresh } of [one, two, server(at.git)]) {
    await refresh();
    expect(reasonsOf(index)).toEqual([[1, 'in band']]);
  }
  // The tombstone of the earlier one is pushed once more, where only the later one is known.
  await at.set(tombstone, undefined);
  const three = server(at.git);
  await three.refresh();
  await at.set(tombstone, await deletion('own'));
  for (const { index, refresh } of [one, two, three]) {
    await refresh();
    expect(reasonsOf(index)).toEqual([[1, 'in band']]);
  }
});

test('a deletion that no trusted key signed counts nowhere', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const first = await at.approval(1, [base, base]);
  await at.set('refs/heads/main', first);
  await at.set('refs/tags/shop/v1', first);
  const tombstone = tombstoneRef(layout, 'shop', 'v1');
  const deleted = { record: { ...emptyRecord(first), deleted: 'v1' } };
  for (const oid of [
    await at.record(2, 'foreign', { workspace: 'w1', ...deleted }),
    await at.record(2, 'own', { workspace: 'w1', repository: 'copy', ...deleted }),
    await at.record(2, 'own', { workspace: 'w1', package: 'other', ...deleted }),
    await at.record(2, 'own', { workspace: 'w1', record: { ...emptyRecord(first), deleted: 'v2' } }),
    await at.record(2, 'own', { workspace: 'w1', record: emptyRecord(first) }),
    first,
  ]) {
    await at.set(tombstone, oid);
    const { index, refresh } = server(at.git);
    await refresh();
    expect(reasonsOf(index)).toEqual([[1, 'in band']]);
  }
});

test('publications of a main branch whose rewrite was accepted stay in band without a cache, on this branch alone', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const first = await at.approval(1, [base, base]);
  await at.set('refs/heads/main', first);
  await at.set('refs/tags/shop/v1', first);
  const one = server(at.git);
  one.ledger.putRepository({ id: 'id', address: 'r', mainHeads: { main: first } });
  await one.refresh();
  // What is pushed in place of the branch, and accepted.
  const rewritten = await at.commit('from the start\n');
  await at.set('refs/heads/main', rewritten);
  await one.refresh();
  one.trust.raise(one.index.marksOfKept(), true);
  one.trust.noteMain(rewritten);
  const again = server(at.git, { ledger: one.ledger });
  await again.refresh();
  expect(reasonsOf(again.index)).toEqual([[1, 'in band']]);
  await at.set('refs/tags/shop/v1', await at.approval(1, [base, base], 'old'));
  await again.refresh();
  expect(reasonsOf(again.index)).not.toEqual([[1, 'in band']]);
  const other = server(at.git, { ledger: one.ledger, branch: 'other' });
  await at.set('refs/tags/shop/v1', first);
  await other.refresh();
  expect(reasonsOf(other.index)).toEqual([[1, 'OtherBranch']]);
});

test('two registrations of one repository with a main branch each follow their own', async () => {
  await using at = await setUp();
  const start = await at.commit('main\n');
  await at.set('refs/heads/main', start);
  await at.set('refs/heads/other', await at.commit('other\n'));
  const one = server(at.git);
  one.ledger.putRepository({ id: 'id', address: 'r', mainHeads: {} });
  const two = server(at.git, { ledger: one.ledger, branch: 'other' });
  const leftBehind = async () => {
    for (const { refresh } of [one, two, one]) await refresh();
    return [one.index.leftBehind, two.index.leftBehind];
  };
  expect(await leftBehind()).toEqual([undefined, undefined]);
  const next = await at.commit('main\n\non top\n', [start]);
  const onTop = await at.commit('other\n\non top\n', [(await at.git.resolveRef('refs/heads/other')) ?? '']);
  await at.set('refs/heads/main', next);
  await at.set('refs/heads/other', onTop);
  expect(await leftBehind()).toEqual([undefined, undefined]);
  await at.set('refs/heads/other', await at.commit('from the start\n'));
  expect(await leftBehind()).toEqual([undefined, onTop]);
  await at.set('refs/heads/main', start);
  expect(await leftBehind()).toEqual([next, onTop]);
});
