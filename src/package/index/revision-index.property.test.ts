import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid, Ref, RefUpdate } from '../../git/git-repository.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { recordRef, watchedPrefixes } from '../model/identity/layout.ts';
import { formatCommitMessage, type PublicationStatement } from '../model/record/commit-message.ts';
import { emptyRecord, formatRecord, type RecordStatement } from '../model/record/record.ts';
import { isPlaceholder, type PackageRevision } from '../model/revision/package-revision.ts';
import { MemoryTrustLedger } from '../trust/ledger/memory-trust-ledger.ts';
import { STATEMENT_VERSION } from '../trust/statement/statement.ts';
import { asWritten, fakeKey, fakeSigned, fakeTrust } from '../trust/testing/fake-signatures.ts';
import { FactCache } from './facts/fact-cache.ts';
import { RevisionIndex } from './revision-index.ts';
import type { IndexChange } from './state/index-delta.ts';

/** Names that lie inside each other, differ in case only, or give the same revision name. */
const PACKAGES = ['a', 'a/b', 'A', 'a.b', 'team/web', 'é'] as const;
const WORKSPACES = ['v1', 'v2', 'main', 'b.v1', 'x'] as const;
const VERSIONS = ['v1', 'v2', 'v10', 'v2.0.0', 'x', 'main'] as const;
const LAYOUT = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

const packageName = fc.constantFrom(...PACKAGES);
const workspace = fc.constantFrom(...WORKSPACES);
const version = fc.constantFrom(...VERSIONS);
const pick = fc.nat(1000);

/** What anybody with git can do to a ref: set it to something, or remove it. */
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constant('drafts'), packageName, workspace, pick) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('proposed'), packageName, workspace, pick) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('tag'), packageName, version, pick) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('deletionProposed'), packageName, version, pick) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('record'), packageName, workspace, pick) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('main'), packageName, workspace, pick) },
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

interface Pool {
  readonly commits: readonly Oid[];
  readonly tags: readonly Oid[];
  readonly mains: readonly Oid[];
  /** Records by `<package>/<workspace>`, for which they were signed, some by a key that is not trusted. */
  readonly records: ReadonlyMap<string, readonly Oid[]>;
  /** Records that are none. */
  readonly junk: readonly Oid[];
}

let scratch: Scratch;
let git: GitRepository;
let pool: Pool;
let ledger: MemoryTrustLedger;

beforeAll(async () => {
  scratch = await scratchRepository();
  git = await openRepository(scratch.path);
  pool = await fill();
  await git.transaction([]);
});

afterAll(async () => {
  await git.close();
  await scratch[Symbol.asyncDispose]();
});

/** Some changes at once, and after how many reads Git fails while they are taken in. */
const step = fc.record({
  operations: fc.array(operation, { minLength: 1, maxLength: 6 }),
  failure: fc.option(fc.nat(4)),
});

test('incremental changes lead to the same index as a new one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await transact(await clear());
      ledger = new MemoryTrustLedger();
      ledger.addKey(fakeKey('own'));
      const shown = new Map<string, PackageRevision>();
      const flaky = new FlakyGit();
      const index = freshIndex(new FactCache(), flaky.git);
      let [rows, { version: seen }] = [rowsByPackage(index), index.changedSince(undefined)];
      for (const { operations, failure } of steps) {
        await transact(await updatesOf(operations));
        const refs = await git.listRefs(watchedPrefixes(LAYOUT));
        flaky.readsLeft = failure ?? Number.POSITIVE_INFINITY;
        try {
          follow(shown, await index.apply(index.diff(refs)));
        } catch (error) {
          if (!isSluiceError(error, 'Unavailable')) throw error;
          // What could not be read is not seen at all, also if it is gone before the next look.
          expect(comparable(shown.values())).toEqual(comparable(index.all()));
          continue;
        }
        await expectLikeFresh(index, shown, refs);
        const { version, packages } = index.changedSince(seen);
        const now = rowsByPackage(index);
        const other = [...rows.keys(), ...now.keys()].filter(
          (name) => !sameRows(rows.get(name) ?? [], now.get(name) ?? []),
        );
        expect(packages).toEqual(expect.arrayContaining(other));
        [rows, seen] = [now, version];
      }
    }),
    { numRuns: runs(25, 5) },
  );
});

async function expectLikeFresh(
  index: RevisionIndex,
  shown: ReadonlyMap<string, PackageRevision>,
  refs: readonly Ref[],
): Promise<void> {
  const fresh = freshIndex();
  await fresh.apply(fresh.diff(refs));
  expect(comparable(index.all())).toEqual(comparable(fresh.all()));
  expect(comparable(shown.values())).toEqual(comparable(index.all()));
  for (const name of PACKAGES) {
    expect(names(index.ofPackage(name))).toEqual(names(fresh.ofPackage(name)));
    // Of several it may be any.
    expect(index.nestedWith(name) === undefined).toBe(fresh.nestedWith(name) === undefined);
  }
  // Nothing was left out that depends on what changed.
  expect(await index.reassess()).toEqual([]);
  const restarted = freshIndex(await index.liveFacts());
  await restarted.apply(restarted.diff(refs));
  expect(comparable(restarted.all())).toEqual(comparable(fresh.all()));
}

function freshIndex(cache = new FactCache(), from = git): RevisionIndex {
  const origin = { repository: 'r', namespace: 'default', layout: LAYOUT };
  return new RevisionIndex({ ...origin, git: from, cache, trust: fakeTrust(ledger, 'id'), isFirstLook: false });
}

/** The repository, whose reading processes end after some reads. */
class FlakyGit {
  readsLeft = Number.POSITIVE_INFINITY;
  readonly git: GitRepository = new Proxy(git, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        this.readsLeft -= 1;
        if (this.readsLeft < 0) throw new SluiceError('Unavailable', 'git ended');
        return value.apply(target, args);
      };
    },
  });
}

/** A listener that only ever hears of changes. */
function follow(shown: Map<string, PackageRevision>, changes: readonly IndexChange[]): void {
  for (const { before, after } of changes) {
    const name = after?.name ?? before?.name ?? '';
    expect(before).toBe(shown.get(name));
    if (after === undefined) shown.delete(name);
    else shown.set(name, after);
  }
}

/** Rows by name. The head that a placeholder was last seen at depends on when one looks; all else must not. */
function comparable(rows: Iterable<PackageRevision>): unknown[] {
  const plain = Array.from(rows, (row) => {
    if (!isPlaceholder(row)) return row;
    const { refOid: _oid, commit: _commit, tip, ...rest } = row;
    return { ...rest, tip: { tree: tip.tree, kptfileBlob: tip.kptfileBlob } };
  });
  return plain.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function rowsByPackage(index: RevisionIndex): Map<string, PackageRevision[]> {
  return Map.groupBy(index.all(), ({ key }) => key.package);
}

/** By identity, in any order. */
function sameRows(a: readonly PackageRevision[], b: readonly PackageRevision[]): boolean {
  return a.length === b.length && a.every((row) => b.includes(row));
}

function names(rows: readonly PackageRevision[]): string[] {
  return rows.map(({ name }) => name).sort();
}

async function updatesOf(operations: readonly Operation[]): Promise<RefUpdate[]> {
  const updates = new Map<string, RefUpdate>();
  for (const [kind, path, last, choice] of operations) {
    const [ref, targets] = place(kind, path, last);
    const old = await git.resolveRef(ref);
    // A third of all operations remove what is there.
    const next = old !== undefined && choice % 3 === 0 ? undefined : targets[choice % targets.length];
    if (next === old) continue;
    if (next === undefined && old !== undefined) updates.set(ref, { type: 'delete', ref, old });
    else if (next !== undefined && old !== undefined) updates.set(ref, { type: 'update', ref, old, new: next });
    else if (next !== undefined) updates.set(ref, { type: 'create', ref, new: next });
  }
  return [...updates.values()];
}

function place(kind: Operation[0], path: string, last: string): [string, readonly Oid[]] {
  if (kind === 'main') return ['refs/heads/main', pool.mains];
  if (kind === 'tag') return [`refs/tags/${path}/${last}`, [...pool.commits, ...pool.tags]];
  if (kind !== 'record') return [`refs/heads/${kind}/${path}/${last}`, pool.commits];
  const own = pool.records.get(`${path}/${last}`) ?? [];
  return [recordRef(LAYOUT, path, last), [...own, ...own, ...pool.junk]];
}

async function clear(): Promise<RefUpdate[]> {
  return (await git.listRefs()).map(({ name, oid }) => ({ type: 'delete', ref: name, old: oid }));
}

/** All of them, or one after the other where names collide. */
async function transact(updates: readonly RefUpdate[]): Promise<void> {
  if (updates.length === 0) return;
  try {
    await git.transaction(updates);
  } catch (error) {
    if (!isSluiceError(error, 'Conflict')) throw error;
    if (updates.length > 1) for (const update of updates) await transact([update]);
  }
}

/** Commits of all sorts, each of which any ref may point to. */
async function fill(): Promise<Pool> {
  const commits: Oid[] = [];
  const kptfiles = ['good', 'gate', 'bad'] as const;
  for (const [number, path] of PACKAGES.entries()) {
    for (const kind of kptfiles) {
      const tree = await git.editTree(undefined, new Map([[`${path}/Kptfile`, { data: Buffer.from(kptfile(kind)) }]]));
      const annotation = { package: path, workspaceName: WORKSPACES[number % WORKSPACES.length] ?? 'x' };
      const context = { actor: { name: 'anna' }, face: 'cli' } as const;
      const base = commits.slice(-2);
      const record = { verdicts: [], steps: [], content: '' };
      const statement: PublicationStatement = {
        ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: 'id', package: path, sequence: 1 },
        ...{ workspace: annotation.workspaceName, previous: null, revision: 1, record, draft: '' },
        ...{ branch: 'main', onto: base[0] ?? '' },
        tree: (await git.statObjects([`${tree}:${path}`]))[0]?.oid ?? '',
      };
      const revision = { ...annotation, revision: '1' };
      const approve = { annotations: [revision], context, action: 'approve' };
      const messages = [
        'pushed\n',
        formatCommitMessage('edit', { annotations: [annotation], context, action: 'edit' }),
        `${formatCommitMessage('approve', approve)}Sluice-Record: ${JSON.stringify(record)}\n`,
        formatCommitMessage('approve', { ...approve, statement: asWritten(fakeSigned(statement, 'own')) }),
        formatCommitMessage('approve', { ...approve, statement: asWritten(fakeSigned(statement, 'foreign')) }),
        `Approving package revision ${path}/2\n\nkpt:${JSON.stringify({ ...annotation, revision: '2' })}\n`,
      ];
      for (const message of messages) commits.push(await commit(tree, message, base));
    }
  }
  const mains: Oid[] = [await commit(await git.editTree(undefined, new Map()), 'empty\n', [])];
  for (const [number, path] of PACKAGES.entries()) {
    for (const kind of ['good', 'bad', 'none'] as const) {
      const edit = kind === 'none' ? null : { data: Buffer.from(kptfile(kind)) };
      const base = await git.readCommit(mains[(number * 7) % mains.length] ?? '');
      const tree = await git.editTree(base.tree, new Map([[`${path}/Kptfile`, edit]]));
      mains.push(await commit(tree, 'main\n', [base.oid]));
    }
  }
  const empty = await git.editTree(undefined, new Map());
  const junk = [await git.writeBlob(Buffer.from('no record'))];
  const unsigned = `one\n\n${JSON.stringify(emptyRecord('1'))}\n`;
  for (const message of ['no record', unsigned]) junk.push(await commit(empty, message, []));
  const records = new Map<string, Oid[]>();
  for (const path of PACKAGES) {
    for (const name of WORKSPACES) {
      const signed = (key: string, sequence: number, repository = 'id') => {
        const statement: RecordStatement = {
          ...{ statement: STATEMENT_VERSION, kind: 'record', repository, package: path, workspace: name },
          ...{ sequence, previous: null, record: emptyRecord(`${sequence}`) },
        };
        return commit(empty, formatRecord('r', asWritten(fakeSigned(statement, key))), []);
      };
      const some = [signed('own', 1), signed('own', 2), signed('own', 4), signed('foreign', 3), signed('own', 9, 'x')];
      records.set(`${path}/${name}`, await Promise.all(some));
    }
  }
  await git.transaction([]);
  const tags: Oid[] = [];
  for (const oid of [commits[0], commits[5], commits[14], commits[40]]) {
    await scratch.git(
      '-c',
      'user.name=h',
      '-c',
      'user.email=h@example.com',
      'tag',
      '-f',
      '-a',
      '-m',
      'x',
      'tmp',
      `${oid}`,
    );
    tags.push(await scratch.git('rev-parse', 'tmp'));
  }
  return { commits: [...commits, ...mains.slice(0, 2)], tags, mains, records, junk };
}

function kptfile(kind: 'good' | 'gate' | 'bad'): string {
  if (kind === 'bad') return 'a: [\n';
  const gates = kind === 'gate' ? 'info:\n  readinessGates:\n    - conditionType: tested\n' : '';
  return `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n${gates}`;
}

function commit(tree: Oid, message: string, parents: readonly Oid[]): Promise<Oid> {
  const signature = { name: 'x', email: 'x@example.com', time: scratch.clock.now() };
  return git.writeCommit({ tree, parents, author: signature, committer: signature, message });
}
