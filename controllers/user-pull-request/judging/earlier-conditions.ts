import { type Condition, conditionsOf, MAX_KPTFILE_BYTES } from '../../../kptfile-schema/index.ts';
import { createPacer } from '../../../src/foundation/concurrency/in-slices.ts';
import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import { inputsInMemory } from '../../../src/package/model/content/content.ts';
import {
  bindInputs,
  changedInputs,
  defaultInputs,
  type PackageInputs,
} from '../../../src/package/model/content/inputs.ts';
import { sameCondition } from '../../../src/package/model/gates/verdict.ts';
import { contentOfFiles, kptfileIn } from './content-in-memory.ts';
import { mergePackage } from './merge-package.ts';

/** Commits of a branch that are searched for the one that has set a condition, and of which the Kptfiles are looked up at once. */
const MAX_COMMITS = 500;
const COMMITS_AT_ONCE = 50;
/** Of the Kptfiles of a package that are read for that. */
const MAX_READ_BYTES = 512 * 1024;
const NONE: ReadonlyMap<string, Condition> = new Map();

/** The commits of a branch from its head on, each the first parent of the one before. They are read once for all packages, as far as is needed. */
export class BranchLine {
  readonly git: GitRepository;
  readonly head: Oid;
  readonly #commits: Oid[];
  readonly #signal: AbortSignal;
  #isWhole = false;

  constructor(git: GitRepository, head: Oid, signal: AbortSignal) {
    this.git = git;
    this.head = head;
    this.#commits = [head];
    this.#signal = signal;
  }

  /** The first ones, so many where there are. */
  async upTo(count: number): Promise<readonly Oid[]> {
    for (let last = this.#commits.at(-1); last !== undefined && !this.#isWhole && this.#commits.length < count; ) {
      this.#signal.throwIfAborted();
      const [parent] = (await this.git.readCommit(last)).parents;
      if (parent === undefined) this.#isWhole = true;
      else this.#commits.push(parent);
      last = parent;
    }
    return this.#commits.slice(0, count);
  }
}

/** A package of a branch. */
export interface BranchPackage {
  readonly line: BranchLine;
  readonly path: string;
}

/**
 * The types of the conditions that a commit of the branch has set for another content of the package than the head has: each counts for the content
 * of the commit that writes it. `conditions` are those of the head which the main branch has not.
 */
export async function earlierConditions(
  branch: BranchPackage,
  conditions: ReadonlyMap<string, Condition>,
  bindsContent: (type: string) => boolean,
): Promise<ReadonlySet<string>> {
  const writers = await writersOf(branch, conditions);
  const earlier = new Set<string>();
  let head: PackageInputs | undefined;
  const inputs = new Map<Oid, PackageInputs | undefined>();
  for (const [type, writer] of writers) {
    if (writer === branch.line.head) continue;
    if (writer !== undefined && !inputs.has(writer)) inputs.set(writer, await inputsAt(branch, writer));
    const there = writer === undefined ? undefined : inputs.get(writer);
    if (there !== undefined) head ??= await inputsAt(branch, branch.line.head);
    if (there === undefined || head === undefined) earlier.add(type);
    else {
      const bound = bindInputs(defaultInputs(type, head, bindsContent(type)), head);
      if (changedInputs(bound, there).length > 0) earlier.add(type);
    }
  }
  return earlier;
}

/** The commit that has set each condition; undefined where it is too far away. */
async function writersOf(
  { line, path }: BranchPackage,
  conditions: ReadonlyMap<string, Condition>,
): Promise<ReadonlyMap<string, Oid | undefined>> {
  const writers = new Map<string, Oid | undefined>([...conditions.keys()].map((type) => [type, undefined]));
  const left = new Map(conditions);
  const pause = createPacer();
  let bytes = 0;
  let above: { readonly commit: Oid; readonly kptfile: Oid | undefined } | undefined;
  for (let begin = 0; begin < MAX_COMMITS && left.size > 0; begin += COMMITS_AT_ONCE) {
    const commits = (await line.upTo(begin + COMMITS_AT_ONCE)).slice(begin);
    const stats = await line.git.statObjects(commits.map((commit) => `${commit}:${path}/Kptfile`));
    for (const [at, commit] of commits.entries()) {
      const { oid: kptfile, size = 0 } = stats[at] ?? {};
      if (above !== undefined && above.kptfile !== kptfile) {
        bytes += size;
        if (bytes > MAX_READ_BYTES) return writers;
        settle(above.commit, size > MAX_KPTFILE_BYTES ? NONE : await conditionsIn(line.git, kptfile));
        await pause();
        if (left.size === 0) return writers;
      }
      above = { commit, kptfile };
    }
    if (commits.length < COMMITS_AT_ONCE) {
      if (above !== undefined) settle(above.commit, NONE);
      break;
    }
  }
  return writers;

  function settle(writer: Oid, before: ReadonlyMap<string, Condition>): void {
    for (const [type, condition] of left) {
      const there = before.get(type);
      if (there !== undefined && sameCondition(there, condition)) continue;
      writers.set(type, writer);
      left.delete(type);
    }
  }
}

async function conditionsIn(git: GitRepository, kptfile: Oid | undefined): Promise<ReadonlyMap<string, Condition>> {
  const [blob] = kptfile === undefined ? [] : await git.readObjects([kptfile]);
  const read = blob?.type === 'blob' ? kptfileIn(blob.data) : undefined;
  return read === undefined ? NONE : conditionsOf(read);
}

/** Undefined if it cannot be read. */
async function inputsAt({ line: { git }, path }: BranchPackage, commit: Oid): Promise<PackageInputs | undefined> {
  const [stat] = await git.statObjects([`${commit}:${path}`]);
  const { files, changed, findings } = await mergePackage(git, { base: undefined, main: undefined, head: stat?.oid });
  if (findings.some(({ code }) => code === 'TooLarge' || code === 'Unreadable')) return undefined;
  return inputsInMemory(files, contentOfFiles(files, [...changed].filter((name) => name !== 'Kptfile').sort()));
}
