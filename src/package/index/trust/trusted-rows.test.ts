import { join } from 'node:path';
import { expect, test } from 'vitest';
import { layout, NAME, RECORD, server, setUp, T, verdict } from '../../../../test/support/trusted-index.ts';
import { recordRef } from '../../model/identity/layout.ts';
import { MAX_MESSAGE_LENGTH } from '../../model/record/commit-message.ts';
import { emptyRecord } from '../../model/record/record.ts';
import { MemoryTrustLedger } from '../../trust/ledger/memory-trust-ledger.ts';
import { STATEMENT_VERSION } from '../../trust/statement/statement.ts';
import { loadFactCache, saveFactCache } from '../facts/fact-file.ts';
import { MAX_CHECKED_AT_ONCE } from './signature-checks.ts';

test('a record is shown if it counts, and its replacement is not', async () => {
  await using at = await setUp();
  const { refresh, row, ledger, index } = server(at.git);
  const scope = { repository: 'id', package: 'shop', workspace: 'v1' };
  await refresh();
  expect(row()).toBe('none');
  ledger.raise([{ scope, sequence: 1, digest: 'known', proven: true }]);
  const [second, third] = [await at.record(2), await at.record(3)];
  for (const [oid, expected] of [
    [second, '2, 1'],
    [third, '3, 1'],
    [second, 'RolledBack'],
    [await at.record(3, 'old', { previous: 'other' }), 'RolledBack'],
    [await at.record(4, 'foreign'), 'UntrustedKey'],
    [await at.record(4, 'own', { workspace: 'v2' }), 'OtherRevision'],
    [await at.record(4, 'own', { repository: 'copy' }), 'OtherRepository'],
    [await at.commit(`s\n\n${JSON.stringify({ ...emptyRecord('c'), verdicts: [verdict] })}\n`), 'Unsigned'],
    [await at.commit('no record\n'), 'Unsigned'],
    [undefined, 'RolledBack'],
    [third, '3, 1'],
  ] as const) {
    await at.set(RECORD, oid);
    const changes = await refresh();
    expect(row()).toBe(expected);
    expect(changes.map(({ after }) => after?.name)).toEqual([NAME]);
    expect(index.get(NAME)?.statement === undefined).toBe(!expected.includes(','));
  }
  expect(ledger.mark(scope)).toMatchObject({ sequence: 3, proven: true });
});

test('a forged record raises no mark, neither of its revision nor of another one, also at a first sync', async () => {
  await using at = await setUp();
  for (const isFirstLook of [false, true]) {
    const { refresh, ledger, row } = server(at.git, { isFirstLook });
    for (const oid of [
      await at.record(9, 'foreign'),
      await at.record(Number.MAX_SAFE_INTEGER, 'own', { workspace: 'v2' }),
    ]) {
      await at.set(RECORD, oid);
      await refresh();
    }
    for (const workspace of ['v1', 'v2']) {
      expect(ledger.mark({ repository: 'id', package: 'shop', workspace })).toBeUndefined();
    }
    await at.set(RECORD, await at.record(2));
    await refresh();
    expect(row()).toBe('2, 0');
  }
});

test('at a first sync verdicts and approvals do not count, nor do later ones until the server writes', async () => {
  await using at = await setUp();
  await at.set(RECORD, await at.record(2));
  const { refresh, row, ledger, index } = server(at.git, { isFirstLook: true });
  await refresh();
  expect(row()).toBe('2, 0');
  await at.set(RECORD, await at.record(4));
  await refresh();
  expect(row()).toBe('4, 0');
  const own = await at.record(5);
  index.noteSigner(own, 'own');
  await at.git.transaction([]);
  const [foreseen] = await index.preview([{ name: RECORD, before: index.ref(RECORD), after: own }]);
  expect(foreseen?.after?.record?.verdicts).toHaveLength(1);
  const scope = { repository: 'id', package: 'shop', workspace: 'v1' };
  ledger.raise([{ scope, sequence: 5, digest: foreseen?.after?.statement?.digest ?? '', proven: true }]);
  await at.set(RECORD, own);
  await refresh();
  expect(row()).toBe('5, 1');
  expect(ledger.mark(scope)).toMatchObject({ sequence: 5, proven: true });
});

test('publications count by key, place and content, and are evaluated again when a key is revoked', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const first = await at.approval(1, [base, base], 'old');
  const second = await at.approval(2, [first, base]);
  const [astray, foreign] = [await at.approval(3, [base, base], 'old'), await at.approval(4, [base, base], 'foreign')];
  await at.set('refs/heads/main', second);
  for (const [revision, oid] of [first, second, astray, foreign].entries())
    await at.set(`refs/tags/shop/v${revision + 1}`, oid);
  await at.set('refs/tags/shop/v9', first);
  const { index, refresh, ledger } = server(at.git);
  await refresh();
  const reasons = () =>
    Array.from(index.all(), ({ revision, outOfBand }) => [revision, outOfBand?.reason] as const)
      .filter(([revision]) => revision > 0)
      .sort(([a], [b]) => a - b);
  const others = [
    [3, 'NotOnMain'],
    [4, 'UntrustedKey'],
    [9, 'OtherRevision'],
  ];
  expect(reasons()).toEqual([[1, undefined], [2, undefined], ...others]);
  // The server knows where the main branch is, and keeps what lies on it.
  ledger.putRepository({ id: 'id', address: 'r', mainHeads: { main: second } });
  ledger.revokeKey('old', T);
  const changed = await index.reassess();
  expect(changed.map(({ after }) => after?.revision)).toEqual([3]);
  expect(reasons()).toEqual([[1, undefined], [2, undefined], [3, 'RevokedKey'], ...others.slice(1)]);
  const backlog = await at.approval(5, [second, base], 'old');
  await at.set('refs/heads/main', backlog);
  await at.set('refs/tags/shop/v5', backlog);
  await refresh();
  expect(index.get('r.shop.w5')?.outOfBand?.reason).toBe('RevokedKey');
});

test('more statements than can be waited for are shown as not verified, until they were checked', async () => {
  await using at = await setUp();
  const count = MAX_CHECKED_AT_ONCE + 1;
  const base = await at.scratch.git('rev-parse', 'main');
  let head = base;
  const changes = [];
  for (let number = 1; number <= count; number += 1) {
    head = await at.approval(number, [head, base], number === 7 ? 'foreign' : 'own');
    changes.push({ name: `refs/tags/shop/v${number}`, before: undefined, after: head });
  }
  await at.git.transaction([]);
  const { index, checks } = server(at.git);
  await index.apply([...changes, { name: 'refs/heads/main', before: undefined, after: head }]);
  const counts = () => {
    const rows = Array.from(index.all()).filter(({ revision }) => revision > 0);
    return Object.groupBy(rows, ({ outOfBand }) => outOfBand?.reason ?? 'in band');
  };
  expect(counts().Unverified).toHaveLength(count);
  expect(checks()).toBe(0);
  let changed = 0;
  for await (const packages of index.checkBacklog()) {
    expect([...packages]).toEqual(['shop']);
    changed += (await index.reassess(packages)).length;
  }
  expect(changed).toBeGreaterThanOrEqual(count);
  expect(checks()).toBe(count);
  expect(counts()['in band']).toHaveLength(count - 1);
  expect(counts().UntrustedKey?.map(({ revision }) => revision)).toEqual([7]);
  for await (const _packages of index.checkBacklog()) throw new Error('nothing is left');
});

test('records that were checked later raise their marks too', async () => {
  await using at = await setUp();
  const { index, ledger } = server(at.git);
  const changes = [];
  const workspaces = Array.from({ length: MAX_CHECKED_AT_ONCE + 1 }, (_, number) => `v${number}`);
  for (const workspace of workspaces) {
    const scope = { repository: 'id', package: 'shop', workspace };
    ledger.raise([{ scope, sequence: 1, digest: 'known', proven: true }]);
    const after = await at.record(3, workspace === 'v9' ? 'foreign' : 'own', { workspace });
    changes.push({ name: recordRef(layout, 'shop', workspace), before: undefined, after });
  }
  await at.git.transaction([]);
  await index.apply(changes);
  for await (const packages of index.checkBacklog()) await index.reassess(packages);
  const sequences = workspaces.map(
    (workspace) => ledger.mark({ repository: 'id', package: 'shop', workspace })?.sequence,
  );
  expect(new Set(sequences.toSpliced(9, 1))).toEqual(new Set([3]));
  expect(sequences[9]).toBe(1);
});

test('signers are kept over a restart, and evaluated by the current keys', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const first = await at.approval(1, [base, base], 'old');
  await at.set('refs/heads/main', first);
  await at.set('refs/tags/shop/v1', first);
  await at.set('refs/tags/shop/v3', await at.approval(3, [base, base]));
  await at.set('refs/tags/shop/v4', await at.approval(4, [base, base], 'foreign'));
  await at.set(RECORD, await at.record(2));
  for (const [ref, oid] of [
    ['refs/heads/drafts/shop/v2', await at.commit('draft\n')],
    [recordRef(layout, 'shop', 'v2'), await at.record(1, 'foreign', { workspace: 'v2' })],
  ] as const)
    await at.set(ref, oid);
  const one = server(at.git);
  await one.refresh();
  expect(one.checks()).toBeGreaterThan(3);
  const file = join(at.scratch.folder, 'cache');
  await saveFactCache(file, await one.index.liveFacts(), one.origin);
  const { cache } = await loadFactCache(file, one.origin);
  const two = server(at.git, { cache, ledger: one.ledger });
  await two.refresh();
  expect(two.checks()).toBe(0);
  const output = ({ index }: typeof one) =>
    Array.from(index.all(), ({ name, outOfBand, recordDistrust, record, statement }) => [
      ...[name, outOfBand?.reason, recordDistrust?.reason, record, statement],
    ]).sort();
  expect(output(two)).toEqual(output(one));
  // The main branch goes on elsewhere, and what was on it when it was seen first stays valid.
  await at.set('refs/heads/main', base);
  const three = server(at.git, {
    cache: (await loadFactCache(file, one.origin)).cache,
    ledger: new MemoryTrustLedger(),
  });
  await three.refresh();
  expect(three.index.get('r.shop.w1')?.outOfBand).toBeUndefined();
  expect(three.index.get('r.shop.w3')?.outOfBand?.reason).toBe('NotOnMain');
  expect(three.index.get('r.shop.w4')?.outOfBand?.reason).toBe('UntrustedKey');
  expect((await loadFactCache(file, { ...one.origin, repositoryId: 'other' })).note).toMatch(/rebuilt/);
});

test('a statement that cannot have been signed fails no reader', async () => {
  await using at = await setUp();
  const { refresh, row } = server(at.git);
  const deep = `${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`;
  const statement = {
    statement: STATEMENT_VERSION,
    kind: 'record',
    repository: 'id',
    package: 'shop',
    workspace: 'v1',
  };
  const payload = JSON.stringify({ ...statement, sequence: 1, previous: null, record: emptyRecord('c'), x: 0 });
  await at.set(RECORD, await at.commit(`s\n\n${payload.replace('"x":0', `"x":${deep}`)}\n\nSluice-Signature: own x\n`));
  await refresh();
  expect(row()).toBe('Unsigned');
});

test('commits and records that are too large to be read are shown as such, and hide nothing', async () => {
  await using at = await setUp();
  const base = await at.scratch.git('rev-parse', 'main');
  const { index, refresh } = server(at.git);
  const sizes = [MAX_MESSAGE_LENGTH, 5 * 1024 * 1024];
  for (const [number, size] of sizes.entries()) {
    const oid = await at.commit(`s\n\nSluice-Action: edit\n${'\n'.repeat(size)}`, [base]);
    await at.set(`refs/heads/drafts/shop/w${number}`, oid);
    await at.set(`refs/tags/shop/v${number + 1}`, oid);
  }
  await at.set(RECORD, await at.commit(`s\n\n${'x'.repeat(5 * 1024 * 1024)}`));
  await refresh();
  for (const [number] of sizes.entries()) {
    const draft = index.get(`r.shop.w${number}`);
    expect(draft).toMatchObject({ lifecycle: 'Draft', kptfile: { metadata: { name: 'shop' } }, problem: undefined });
    expect(draft?.tip.facts).toMatchObject({ annotations: [], unread: expect.stringMatching(/it.* has \d+/) });
    const tag = index.ofPackage('shop').find(({ revision }) => revision === number + 1);
    expect(tag?.outOfBand).toMatchObject({
      reason: 'NotAnApproval',
      message: expect.stringContaining('was not read: it'),
    });
  }
  expect(index.get(NAME)?.recordDistrust).toMatchObject({
    reason: 'Unsigned',
    message: expect.stringContaining('larger than a mebibyte'),
  });
});

test('verdicts of rows that are shown do not count either once the ledger turns out to be an old one', async () => {
  await using at = await setUp();
  const { refresh, row, ledger, trust, index } = server(at.git);
  const scope = { repository: 'id', package: 'shop', workspace: 'v1' };
  await refresh();
  ledger.raise([{ scope, sequence: 1, digest: 'known', proven: true }]);
  await at.set(RECORD, await at.record(2));
  await refresh();
  expect(row()).toBe('2, 1');
  trust.noteFirstLook();
  expect((await index.reassess()).map(({ after }) => after?.name)).toEqual([NAME]);
  expect(row()).toBe('2, 0');
});
