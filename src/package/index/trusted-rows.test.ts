import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scratchRepository } from '../../../test/support/scratch-repository.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { openRepository } from '../../git/open-repository.ts';
import { formatCommitMessage, MAX_MESSAGE_LENGTH, type PublicationStatement } from '../commit-message.ts';
import { recordRef, watchedPrefixes } from '../layout.ts';
import { emptyRecord, formatRecord, type RecordStatement, type Verdict } from '../record.ts';
import { MemoryTrustLedger } from '../trust/memory-trust-ledger.ts';
import { STATEMENT_VERSION } from '../trust/statement.ts';
import { fakeKey, fakeSigned, fakeTrust } from '../trust/testing/fake-signatures.ts';
import { FactCache } from './fact-cache.ts';
import { loadFactCache, saveFactCache } from './fact-file.ts';
import { RevisionIndex } from './revision-index.ts';
import { MAX_CHECKED_AT_ONCE } from './signature-checks.ts';

const layout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const T = '2026-01-01T00:00:00Z';
const NAME = 'r.shop.v1';
const RECORD = recordRef(layout, 'shop', 'v1');
const verdict: Verdict = {
  type: 'G',
  status: 'True',
  inputs: { content: 'c' },
  by: 'qa',
  face: 'api',
  at: T,
  since: T,
};

async function setUp() {
  const scratch = await scratchRepository();
  const git = await openRepository(scratch.path);
  const signature = { name: 'x', email: 'x@example.com', time: 0 };
  const edits = (...paths: string[]) =>
    new Map(paths.map((path) => [`${path}/Kptfile`, { data: Buffer.from(KPTFILE) }]));
  const tree = await git.editTree(undefined, edits('shop'));
  const empty = await git.editTree(undefined, new Map());
  const commit = (message: string, parents: readonly Oid[] = [], of = tree) =>
    git.writeCommit({ tree: of, parents, author: signature, committer: signature, message });
  const set = async (ref: string, oid: Oid | undefined) => {
    const old = await git.resolveRef(ref);
    if (oid === undefined && old !== undefined) await git.transaction([{ type: 'delete', ref, old }]);
    else if (oid !== undefined && old === undefined) await git.transaction([{ type: 'create', ref, new: oid }]);
    else if (oid !== undefined && old !== undefined) await git.transaction([{ type: 'update', ref, old, new: oid }]);
  };
  const record = (sequence: number, key = 'own', overrides: Partial<RecordStatement> = {}) => {
    const statement: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: 'id', package: 'shop', workspace: 'v1' },
      ...{ sequence, previous: null },
      record: { ...emptyRecord('c'), verdicts: [verdict], labels: { sequence: `${sequence}` } },
      ...overrides,
    };
    return commit(formatRecord('r', fakeSigned(statement, key)), [], empty);
  };
  /** The approval of a revision of the package. */
  const approval = async (revision: number, parents: readonly Oid[], key = 'own') => {
    const statement: PublicationStatement = {
      ...{
        statement: STATEMENT_VERSION,
        kind: 'publication',
        repository: 'id',
        package: 'shop',
        workspace: `w${revision}`,
      },
      ...{ sequence: 1, previous: null, revision, draft: 'd', record: { verdicts: [], steps: [], content: 'c' } },
      tree: (await git.statObjects([`${tree}:shop`]))[0]?.oid ?? '',
    };
    const context = { actor: { name: 'ann' }, face: 'cli' } as const;
    return commit(
      formatCommitMessage('approve', { context, action: 'approve', statement: fakeSigned(statement, key) }),
      parents,
    );
  };
  await set('refs/heads/drafts/shop/v1', await commit('draft\n'));
  return {
    ...{ scratch, git, set, record, approval, commit },
    [Symbol.asyncDispose]: async () => {
      await git.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** A server with a ledger of its own. */
function server(
  git: GitRepository,
  options: { isFirstLook?: boolean; cache?: FactCache; ledger?: MemoryTrustLedger } = {},
) {
  const { isFirstLook = false, cache = new FactCache(), ledger = new MemoryTrustLedger() } = options;
  for (const key of ['own', 'old']) ledger.addKey(fakeKey(key));
  const trust = fakeTrust(ledger, 'id');
  let checks = 0;
  const { signerOf } = trust;
  trust.signerOf = (signed) => {
    checks += 1;
    return signerOf.call(trust, signed);
  };
  const origin = { repository: 'r', namespace: 'default', layout };
  const index = new RevisionIndex({ ...origin, git, cache, trust, isFirstLook });
  const refresh = async () => index.apply(index.diff(await git.listRefs(watchedPrefixes(layout))));
  /** What the row of the draft says: its sequence and verdicts, or why its record does not count. */
  const row = () => {
    const { record, recordDistrust } = index.get(NAME) ?? {};
    return (
      recordDistrust?.reason ??
      (record === undefined ? 'none' : `${record.labels?.sequence}, ${record.verdicts.length}`)
    );
  };
  return { index, ledger, trust, refresh, row, origin: { ...origin, repositoryId: 'id' }, checks: () => checks };
}

test('a record is shown if it counts, and not what is put in its place', async () => {
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

test('a forged record raises no mark, neither of its revision nor of another one, also at a first look', async () => {
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

test('at a first look verdicts and approvals do not count, and neither on top of that until the server writes', async () => {
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
  ledger.putRepository({ id: 'id', address: 'r', mainHead: second });
  ledger.revokeKey('old', T);
  const changed = await index.reassess();
  expect(changed.map(({ after }) => after?.revision)).toEqual([3]);
  expect(reasons()).toEqual([[1, undefined], [2, undefined], [3, 'RevokedKey'], ...others.slice(1)]);
  const late = await at.approval(5, [second, base], 'old');
  await at.set('refs/heads/main', late);
  await at.set('refs/tags/shop/v5', late);
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

test('what signatures say is kept over a restart, and evaluated by the keys of then', async () => {
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
  const said = ({ index }: typeof one) =>
    Array.from(index.all(), ({ name, outOfBand, recordDistrust, record, statement }) => [
      ...[name, outOfBand?.reason, recordDistrust?.reason, record, statement],
    ]).sort();
  expect(said(two)).toEqual(said(one));
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

test('a statement that nobody could have signed fails nobody', async () => {
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
    message: expect.stringContaining('larger than records'),
  });
});
