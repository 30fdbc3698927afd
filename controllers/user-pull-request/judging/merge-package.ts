import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { type Finding, findingAt } from '../../../src/function/lint/finding.ts';
import { notAFile } from '../../../src/function/lint/not-a-file.ts';
import type { FileEntry, GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { unreadableReason } from '../../../src/package/model/content/unreadable-content.ts';

/** Limits for one package of a pull request, far below those of packages: many pull requests are checked beside all other work. */
export const MAX_FILES = 2000;
export const MAX_BYTES = 8 * 1024 * 1024;

/** A package as the main branch would have it after the merge. */
export interface MergedPackage {
  /** Contents by path below its folder, without links. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Paths that differ from the main branch. */
  readonly changed: ReadonlySet<string>;
  /** Entries that are refused, and files that both sides have changed. */
  readonly findings: readonly Finding[];
  /** It is the package of the head, with nothing of the main branch that this has not. */
  readonly isOfHead: boolean;
  /** The same of the main branch, for a comparison; undefined if they are more than is read, or cannot be read. */
  readonly onMain: ReadonlyMap<string, Buffer> | undefined;
}

/** The trees of one package; undefined where it is absent. */
export interface PackageTrees {
  /** At the commit where the branch began. */
  readonly base: Oid | undefined;
  readonly main: Oid | undefined;
  readonly head: Oid | undefined;
  /** The main branch has the folder, if at all, as no package: all of its files count as changed. */
  readonly isNew?: boolean;
}

const UNREAD: ReadonlyMap<string, FileEntry> = new Map();

/**
 * Merges a package file by file, in memory. A file that both sides have changed in different ways is a finding, and taken from the branch. What
 * exceeds the limits, or cannot be read, is a finding too, and nothing of it is read.
 */
export async function mergePackage(git: GitRepository, trees: PackageTrees): Promise<MergedPackage> {
  const findings: Finding[] = [];
  // What the main branch has not changed is taken from the branch as a whole: that it cannot be read does not matter, and the branch may repair it.
  const isWhole = trees.base === trees.main;
  const main = await list(trees.main, isWhole);
  const [base, head] = [isWhole ? main : await list(trees.base, false), await list(trees.head, false)];
  const merged = new Map<string, FileEntry>();
  const changed = new Set<string>();
  let isOfHead = true;
  for (const path of new Set([...base.keys(), ...main.keys(), ...head.keys()])) {
    const [was, there, wanted] = [base.get(path), main.get(path), head.get(path)];
    const isByMain = isSame(was, wanted);
    if (!isByMain && !isSame(was, there) && !isSame(there, wanted)) {
      const message = 'the main branch has changed it too since this branch began; merge the main branch into this one';
      findings.push(findingAt(path, { severity: 'error', message, code: 'MergeConflict' }));
    }
    const result = isByMain ? there : wanted;
    if (trees.isNew === true || !isSame(result, there)) changed.add(path);
    isOfHead &&= isSame(result, wanted);
    if (result === undefined) continue;
    if (result.mode.startsWith('100')) merged.set(path, result);
    else if (changed.has(path) || path === 'Kptfile') findings.push(findingAt(path, notAFile(result.mode)));
  }
  const { files, largest, bytes } = await contentsOf(git, merged);
  if (files === undefined) {
    const message = `the files of the package have ${bytes} bytes, this one the most; at most ${MAX_BYTES} are checked in a pull request`;
    findings.push(findingAt(largest, { severity: 'error', message, code: 'TooLarge' }));
  }
  const isUnread = findings.some(({ code }) => code === 'TooLarge' || code === 'Unreadable');
  const onMain = isUnread || main === UNREAD ? undefined : (await contentsOf(git, main)).files;
  return { files: (isUnread ? undefined : files) ?? new Map(), changed, findings, isOfHead, onMain };

  async function list(tree: Oid | undefined, mayBeUnread: boolean): Promise<ReadonlyMap<string, FileEntry>> {
    if (tree === undefined) return new Map();
    try {
      return new Map((await git.listFiles(tree, MAX_FILES)).map((entry) => [entry.path, entry]));
    } catch (error) {
      const unreadable = unreadableReason(error);
      if (unreadable === undefined) throw error;
      if (mayBeUnread) return UNREAD;
      if (!isSluiceError(error, 'LimitExceeded')) {
        findings.push(findingAt('Kptfile', { severity: 'error', message: unreadable, code: 'Unreadable' }));
        return new Map();
      }
      const message = `the package has more than ${MAX_FILES} files, or a path that is too long; they are not checked in a pull request`;
      findings.push(findingAt('Kptfile', { severity: 'error', message, code: 'TooLarge' }));
      return new Map();
    }
  }
}

function isSame(one: FileEntry | undefined, other: FileEntry | undefined): boolean {
  return one?.oid === other?.oid && one?.mode === other?.mode;
}

/** The contents of regular files by path; without them if they have more bytes than are read, and with the path of the largest one. */
async function contentsOf(
  git: GitRepository,
  entries: ReadonlyMap<string, FileEntry>,
): Promise<{
  readonly files: ReadonlyMap<string, Buffer> | undefined;
  readonly bytes: number;
  readonly largest: string;
}> {
  const regular = [...entries.values()].filter(({ mode }) => mode.startsWith('100'));
  const sizes = (await git.statObjects(regular.map(({ oid }) => oid))).map((stat) => stat?.size ?? 0);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const largest = regular[sizes.indexOf(Math.max(...sizes))]?.path ?? 'Kptfile';
  if (bytes > MAX_BYTES) return { files: undefined, bytes, largest };
  const objects = await git.readObjects(regular.map(({ oid }) => oid));
  const files = new Map(regular.map(({ path }, at) => [path, objects[at]?.data ?? Buffer.alloc(0)]));
  return { files, bytes, largest };
}
