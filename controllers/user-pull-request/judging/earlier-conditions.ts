import { type Condition, conditionsOf, MAX_KPTFILE_BYTES } from '../../../kptfile-schema/index.ts';
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

/** Commits of a branch that are searched for the one that has set a condition. */
const MAX_COMMITS = 500;
const NONE: ReadonlyMap<string, Condition> = new Map();

/** A package of a branch, whose `commit` is the head. */
export interface BranchPackage {
  readonly git: GitRepository;
  readonly commit: Oid;
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
    if (writer === branch.commit) continue;
    if (writer !== undefined && !inputs.has(writer)) inputs.set(writer, await inputsAt(branch, writer));
    const there = writer === undefined ? undefined : inputs.get(writer);
    if (there !== undefined) head ??= await inputsAt(branch, branch.commit);
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
  { git, commit, path }: BranchPackage,
  conditions: ReadonlyMap<string, Condition>,
): Promise<ReadonlyMap<string, Oid | undefined>> {
  const writers = new Map<string, Oid | undefined>([...conditions.keys()].map((type) => [type, undefined]));
  const left = new Map(conditions);
  const read = new Map<Oid, ReadonlyMap<string, Condition>>();
  let at = commit;
  for (let count = 0; count < MAX_COMMITS && left.size > 0; count += 1) {
    const [parent] = (await git.readCommit(at)).parents;
    const before = parent === undefined ? NONE : await conditionsAt(parent);
    for (const [type, condition] of left) {
      const there = before.get(type);
      if (there !== undefined && sameCondition(there, condition)) continue;
      writers.set(type, at);
      left.delete(type);
    }
    if (parent === undefined) break;
    at = parent;
  }
  return writers;

  async function conditionsAt(one: Oid): Promise<ReadonlyMap<string, Condition>> {
    const [stat] = await git.statObjects([`${one}:${path}/Kptfile`]);
    if (stat === undefined || stat.size > MAX_KPTFILE_BYTES) return NONE;
    const known = read.get(stat.oid);
    if (known !== undefined) return known;
    const [blob] = await git.readObjects([stat.oid]);
    const kptfile = blob?.type === 'blob' ? kptfileIn(blob.data) : undefined;
    const found = kptfile === undefined ? NONE : conditionsOf(kptfile);
    read.set(stat.oid, found);
    return found;
  }
}

/** Undefined if it cannot be read. */
async function inputsAt({ git, path }: BranchPackage, commit: Oid): Promise<PackageInputs | undefined> {
  const [stat] = await git.statObjects([`${commit}:${path}`]);
  const { files, changed, findings } = await mergePackage(git, { base: undefined, main: undefined, head: stat?.oid });
  if (findings.some(({ code }) => code === 'TooLarge' || code === 'Unreadable')) return undefined;
  return inputsInMemory(files, contentOfFiles(files, [...changed].filter((name) => name !== 'Kptfile').sort()));
}
