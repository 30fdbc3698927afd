import { lineStepsInSlices } from '../../../src/foundation/text/line-steps.ts';
import type { Commit, GitRepository, Oid, Signature, TreeChange, TreeEntry } from '../../../src/git/git-repository.ts';
import { readableChanges } from './readable-changes.ts';

/** Commits of a branch that copies are compared with. */
const MAX_COMMITS = 1000;
/** Files that the main branch had changed as well: so many are compared line by line for a commit, and for all of them, each up to that size. */
const MAX_FILES = 50;
const MAX_ALL_FILES = 1000;
const MAX_FILE_BYTES = 256 * 1024;

type Git = Pick<GitRepository, 'diffTrees' | 'readCommit' | 'readObjects' | 'statObjects'>;

export interface Copies {
  /** The commit below them. */
  readonly start: Oid;
  /** The last one is no copy. */
  readonly isSquash: boolean;
}

/**
 * Where the commits of the main branch begin that are copies of `picked`, the commits of a branch, of those after `start`: each has the committer of the
 * last one, and changes nothing that its original does not change in the same way. The last one, which the host names as the merge, is part of it in
 * any case: if it is no copy, it is a squash.
 */
export async function startOfCopies(
  git: Git,
  {
    picked,
    commit,
    start,
    isMergeBase,
  }: {
    readonly picked: readonly Commit[];
    readonly commit: Oid;
    readonly start: Oid;
    /** The main branch had none of `picked` before the merge. */
    readonly isMergeBase: boolean;
  },
  signal: AbortSignal,
): Promise<Copies> {
  const originals = new Map(picked.slice(0, MAX_COMMITS).map((one) => [one.oid, one]));
  const known = new Map<Oid, readonly TreeChange[] | undefined>();
  let left = MAX_ALL_FILES;
  let above: { readonly copy: Commit; readonly original: Commit } | undefined;
  let isKept = false;
  const { committer } = await git.readCommit(commit);
  for (let oid = commit; oid !== start; ) {
    signal.throwIfAborted();
    const copy = await git.readCommit(oid);
    const [parent] = copy.parents;
    if (parent === undefined) return { start: oid, isSquash: false };
    if (!(await isCopy(copy))) {
      const isSquash = oid === commit;
      return { start: isSquash ? parent : oid, isSquash };
    }
    oid = parent;
  }
  return { start, isSquash: false };

  async function isCopy(copy: Commit): Promise<boolean> {
    if (originals.has(copy.oid)) {
      isKept ||= isMergeBase && above !== undefined && isCopiedOnto(copy.oid, above);
      return isKept;
    }
    // What is below one of the branch itself was there before it.
    if (isKept || !isSamePerson(copy.committer, committer)) return false;
    const before = await treeBefore(git, copy);
    if (copy.tree === before) return true;
    // Of these nothing has to be read, which cannot be done where one of them is malformed.
    for (const original of originals.values())
      if (original.tree === copy.tree && (await treeBefore(git, original)) === before) return isCopyOf(original);
    const changes = await readableChanges(git, before, copy.tree);
    if (changes === undefined) return false;
    if (changes.length === 0) return true;
    const budget = { files: Math.min(MAX_FILES, left) };
    const isIn = async (wanted: readonly TreeChange[]) => {
      const { files } = budget;
      const isContained = await contains(git, wanted, changes, budget);
      left -= files - budget.files;
      return isContained;
    };
    for (const [oid, original] of originals) {
      const wanted = known.has(oid)
        ? known.get(oid)
        : await readableChanges(git, await treeBefore(git, original), original.tree);
      known.set(oid, wanted);
      if (wanted !== undefined && (await isIn(wanted))) return isCopyOf(original);
    }
    return false;

    function isCopyOf(original: Commit): true {
      originals.delete(original.oid);
      above = { copy, original };
      return true;
    }
  }
}

/**
 * Whether a rebase of Git has begun with a commit of the branch, which it leaves as it is where the main branch is its parent, and has copied another
 * one onto it, whose parent it is not. Otherwise that commit can have been pushed to the main branch by itself, before the merge. A squash, which has
 * the time of its commit, can be like such a copy.
 */
function isCopiedOnto(oid: Oid, { copy, original }: { readonly copy: Commit; readonly original: Commit }): boolean {
  const isOfAuthor = isSamePerson(copy.author, original.author) && copy.author.time === original.author.time;
  return isOfAuthor && copy.committer.time > copy.author.time && !original.parents.includes(oid);
}

async function treeBefore(git: Git, { parents: [parent] }: Commit): Promise<Oid | undefined> {
  return parent === undefined ? undefined : (await git.readCommit(parent)).tree;
}

/** A copy can lack changes, which the main branch had already. */
async function contains(
  git: Git,
  original: readonly TreeChange[],
  copy: readonly TreeChange[],
  budget: { files: number },
): Promise<boolean> {
  const byPath = new Map(original.map((change) => [change.path, change]));
  for (const change of copy) {
    const source = byPath.get(change.path);
    if (source === undefined) return false;
    if (!isSame(source.after, change.after) && !(await hasItsLines(git, source, change, budget))) return false;
  }
  return true;
}

function isSamePerson(one: Signature, other: Signature): boolean {
  return one.name === other.name && one.email === other.email;
}

function isSame(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  return one?.oid === other?.oid && one?.mode === other?.mode;
}

/** The copy adds and removes lines that its original does, in a file that the main branch had changed elsewhere, or had changed to some of it. */
async function hasItsLines(
  git: Git,
  original: TreeChange,
  copy: TreeChange,
  budget: { files: number },
): Promise<boolean> {
  const entries = [original.before, original.after, copy.before, copy.after];
  const present = entries.flatMap((entry) => entry ?? []);
  const isFile = ({ mode }: TreeEntry) => mode.startsWith('100');
  const isSameMode = original.before?.mode === copy.before?.mode && original.after?.mode === copy.after?.mode;
  if (present.length < entries.length || !present.every(isFile) || !isSameMode || budget.files === 0) return false;
  budget.files -= 1;
  const oids = present.map(({ oid }) => oid);
  if ((await git.statObjects(oids)).some((stat) => stat === undefined || stat.size > MAX_FILE_BYTES)) return false;
  const lines = (await git.readObjects(oids)).map((read) => (read?.data.toString('latin1') ?? '').split('\n'));
  const [before = [], after = [], beforeCopy = [], afterCopy = []] = lines;
  const left = new Map<string, number>();
  for (const line of await changedLines(before, after)) left.set(line, (left.get(line) ?? 0) + 1);
  for (const line of await changedLines(beforeCopy, afterCopy)) {
    const count = left.get(line) ?? 0;
    if (count === 0) return false;
    left.set(line, count - 1);
  }
  return true;
}

/** Of equal lines that follow one another, either can count as the one that was added. */
async function changedLines(before: readonly string[], after: readonly string[]): Promise<readonly string[]> {
  const steps = (await lineStepsInSlices(before, after)).filter(({ kind }) => kind !== ' ');
  return steps.map(({ kind, line }) => `${kind}${line}`);
}
