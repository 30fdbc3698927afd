import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import type { Commit, Oid } from '../../../git/git-repository.ts';
import { mergeBase } from '../../../git/objects/merge-base.ts';
import { commitsBeyond, mergeBases } from '../../../git/objects/merge-bases.ts';
import type { PackageRepository } from '../../store/package-repository.ts';
import { ComparedForeignFiles } from './compared-foreign-files.ts';

const PATHS = ['app'];
const HOUR_MS = 3_600_000;

type Style = 'merge' | 'squash' | 'rebase' | 'kept-rebase' | 'fast-forward';
/** A step before the merge: of the branch, unless it is said to be of the main branch. */
type Step =
  | { readonly kind: 'package' }
  | { readonly kind: 'merge-main' }
  | { readonly kind: 'other'; readonly file: 'a' | 'b'; readonly text: string }
  | { readonly kind: 'main'; readonly file: 'a' | 'b'; readonly text: string }
  /** The branch as it is then is another one, on which the rest is based, and is merged an hour before. */
  | { readonly kind: 'stack'; readonly style: 'merge' | 'squash' | 'rebase' };
interface Flow {
  readonly steps: readonly Step[];
  readonly style: Style;
  /** The head was compared before the merge, by the same process. */
  readonly isSeen: boolean;
  readonly reported: 'head of main' | 'merge base' | undefined;
}

let scratch: Scratch;
let repository: PackageRepository;
let root: Oid;
let count = 0;

beforeAll(async () => {
  scratch = await scratchRepository();
  ({ repository } = await scratch.open());
  root = await commit(await withFiles(repository.index.mainHead, { 'web/a': '0', 'web/b': '0', 'app/k': '0' }), []);
});
afterAll(() => scratch[Symbol.asyncDispose]());

function withFiles(onto: Oid | undefined, files: Readonly<Record<string, string>>): Promise<Oid> {
  const edits = Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text) }] as const);
  return repository.git.editTree(onto, new Map(edits));
}

/** Each one a second later than the one before. */
async function commit(tree: Oid, parents: readonly Oid[], author?: Commit['author']): Promise<Oid> {
  scratch.clock.advance(1000);
  const person = { name: 'a', email: 'a@example.com', time: scratch.clock.now() };
  return repository.git.writeCommit({ tree, parents, author: author ?? person, committer: person, message: 'x\n' });
}

const treeOf = async (oid: Oid) => (await repository.git.readCommit(oid)).tree;
const isOutside = ({ path }: { readonly path: string }) => !path.startsWith('app/');

/** The tree of a commit with what changed between two others. */
async function withChanges(onto: Oid, before: Oid, after: Oid): Promise<Oid> {
  const { git } = repository;
  const [from, to] = [await treeOf(before), await treeOf(after)];
  const changed = (await git.diffTrees(from, to)).map(({ path }) => path);
  const stats = await git.statObjects(changed.map((path) => `${to}:${path}`));
  const edits = changed.map((path, at) => {
    const oid = stats[at]?.oid;
    return [path, oid === undefined ? null : { oid, mode: '100644' as const }] as const;
  });
  return git.editTree(await treeOf(onto), new Map(edits));
}

async function combined(onto: Oid, other: Oid): Promise<Oid> {
  return withChanges(onto, (await mergeBase(repository.git, onto, other)) ?? root, other);
}

/** As hosts do: without merges, and without what changes nothing. Some keep the commits that are on top of the main branch already. */
async function rebased(main: Oid, head: Oid, isKeeping: boolean): Promise<Oid> {
  const { git } = repository;
  const own = await Promise.all([...((await commitsBeyond(git, head, main)) ?? [])].map((oid) => git.readCommit(oid)));
  let onto = main;
  for (const one of own.sort((a, b) => a.committer.time - b.committer.time)) {
    const [parent = ''] = one.parents;
    if (one.parents.length > 1) continue;
    const tree = await withChanges(onto, parent, one.oid);
    if (isKeeping && parent === onto) onto = one.oid;
    else if (tree !== (await treeOf(onto))) onto = await commit(tree, [onto], one.author);
  }
  return onto;
}

async function merged(main: Oid, head: Oid, style: Style): Promise<Oid> {
  if (style === 'fast-forward') return head;
  if (style === 'rebase' || style === 'kept-rebase') return rebased(main, head, style === 'kept-rebase');
  return commit(await combined(main, head), style === 'merge' ? [main, head] : [main]);
}

async function prepare(steps: readonly Step[]): Promise<{ readonly main: Oid; readonly head: Oid }> {
  let [main, head] = [root, root];
  for (const step of steps) {
    count += 1;
    if (step.kind === 'package') head = await commit(await withFiles(head, { 'app/k': `${count}` }), [head]);
    else if (step.kind === 'merge-main') head = await commit(await combined(head, main), [head, main]);
    else if (step.kind === 'stack') {
      main = await merged(main, head, step.style);
      scratch.clock.advance(HOUR_MS);
    } else {
      const onto = step.kind === 'main' ? main : head;
      const made = await commit(await withFiles(onto, { [`web/${step.file}`]: step.text }), [onto]);
      if (step.kind === 'main') main = made;
      else head = made;
    }
  }
  return { main, head };
}

/** What the merge of a flow changed outside of the package, and what is found; undefined if it makes no such merge. */
async function compared({ steps, style, isSeen, reported }: Flow) {
  const { git, index } = repository;
  const { main, head } = await prepare([...steps, PACKAGE]);
  const common = await mergeBase(git, head, main);
  if (style === 'fast-forward' && common !== main) return undefined;
  const reader = new ComparedForeignFiles(git, index);
  const about = { commit: head, paths: PATHS, base: root };
  const ofHead = await reader.ofHead(about, main);
  const result = await merged(main, head, style);
  const of = async (one: Oid) =>
    (await git.diffTrees(await treeOf(main), one)).filter(isOutside).map(({ path }) => path);
  // Where the host keeps commits, what it reports is all that shows which of them the main branch had before.
  const isReported = style === 'fast-forward' || style === 'kept-rebase';
  const base = isReported || reported === 'merge base' ? common : reported === undefined ? undefined : main;
  const used = isSeen ? reader : new ComparedForeignFiles(git, index);
  const bases = (await mergeBases(git, head, main)) ?? [];
  return {
    ofHead: ofHead?.files ?? [],
    // With several, it is not what `combined` does.
    wouldBe: bases.length === 1 ? await of(await combined(main, head)) : undefined,
    ofMerge: (await used.ofMerge(about, result, base))?.files ?? [],
    was: await of(await treeOf(result)),
  };
}

const PACKAGE = { kind: 'package' } as const;
const other = (text: string, file: 'a' | 'b' = 'a') => ({ kind: 'other', file, text }) as const;
const main = (text: string, file: 'a' | 'b' = 'b') => ({ kind: 'main', file, text }) as const;
const MERGE_MAIN = { kind: 'merge-main' } as const;
const stack = (style: 'merge' | 'squash' | 'rebase') => ({ kind: 'stack', style }) as const;

const ORDINARY: readonly (readonly [string, readonly Step[]])[] = [
  ['the package alone', [PACKAGE, PACKAGE]],
  ['behind the main branch', [PACKAGE, main('1')]],
  ['the main branch merged', [PACKAGE, main('1'), MERGE_MAIN, PACKAGE]],
  ['the main branch merged twice, and moved since', [main('1'), MERGE_MAIN, main('2'), MERGE_MAIN, main('3')]],
  ['based on a branch that was squashed', [other('1'), stack('squash')]],
  ['based on a branch that was merged', [other('1'), stack('merge'), main('1')]],
  ['based on a branch that was rebased', [main('1'), other('1'), stack('rebase'), PACKAGE]],
  ['based on two branches', [other('1'), stack('squash'), other('1', 'b'), stack('squash')]],
  ['a change taken back', [other('1'), PACKAGE, other('0')]],
];
const HOSTILE: readonly (readonly [string, readonly Step[]])[] = [
  ['another file first', [other('1'), PACKAGE]],
  ['another file on the main branch as it was merged', [main('1'), MERGE_MAIN, other('1')]],
  ['another file before the main branch was merged', [other('1'), main('1'), MERGE_MAIN]],
  ['another file after the branch below', [other('1'), stack('squash'), other('2')]],
  ['a file that the main branch has taken back', [other('1'), stack('squash'), main('0', 'a')]],
];
const STYLES = ['merge', 'squash', 'rebase', 'kept-rebase', 'fast-forward'] as const;
const REPORTED = ['head of main', 'merge base', undefined] as const;

async function ofAll(steps: readonly Step[]) {
  const found: { readonly about: unknown; readonly ofMerge: readonly string[]; readonly was: readonly string[] }[] = [];
  for (const style of STYLES)
    for (const isSeen of [true, false])
      for (const reported of REPORTED) {
        const one = await compared({ steps, style, isSeen, reported });
        if (one === undefined) continue;
        found.push({ about: { style, isSeen, reported }, ofMerge: one.ofMerge, was: one.was });
      }
  return found;
}

test.each(ORDINARY)('no merge of a branch is reported: %s', async (_, steps) => {
  expect(await compared({ steps, style: 'merge', isSeen: true, reported: undefined })).toMatchObject({ ofHead: [] });
  for (const one of await ofAll(steps)) expect(one).toMatchObject({ ofMerge: [], was: [] });
});

test.each(HOSTILE)('each merge of a branch is reported: %s', async (_, steps) => {
  expect(await compared({ steps, style: 'merge', isSeen: true, reported: undefined })).toMatchObject({
    ofHead: ['web/a'],
  });
  for (const one of await ofAll(steps)) expect(one).toMatchObject({ ofMerge: ['web/a'], was: ['web/a'] });
});

test('of any history, exactly what the merge has changed is reported', async () => {
  const file = fc.constantFrom('a' as const, 'b' as const);
  const text = fc.constantFrom('0', '1', '2');
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constantFrom('package' as const, 'merge-main' as const) }),
    fc.record({ kind: fc.constantFrom('other' as const, 'main' as const), file, text }),
    fc.record({ kind: fc.constant('stack' as const), style: fc.constantFrom('merge', 'squash', 'rebase') }),
  );
  const flow: fc.Arbitrary<Flow> = fc.record({
    steps: fc.array(step, { maxLength: 7 }),
    style: fc.constantFrom(...STYLES),
    isSeen: fc.boolean(),
    reported: fc.constantFrom(...REPORTED),
  });
  await fc.assert(
    fc.asyncProperty(flow, async (one) => {
      const found = await compared(one);
      if (found === undefined) return;
      expect(found.ofMerge).toEqual(found.was);
      if (found.wouldBe !== undefined) expect(found.ofHead).toEqual(found.wouldBe);
    }),
    { numRuns: runs(100) },
  );
});
