import { LruCache } from '../../../foundation/lru-cache.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';
import { mergeBase } from '../../../git/objects/merge-base.ts';
import { commitsBeyond, mergeBases } from '../../../git/objects/merge-bases.ts';
import { isOid } from '../../../git/objects/object-id.ts';
import type { RevisionIndex } from '../../index/revision-index.ts';
import { unreadableReason } from '../../model/content/unreadable-content.ts';
import type { ForeignFiles } from '../../model/revision/revision-state.ts';
import type { ForeignFileReader, MergedHead } from '../ports/foreign-file-reader.ts';
import { latestWithin, mainParent } from './main-before-merge.ts';
import { startOfRebase } from './rebased-commits.ts';

/** Heads of which the result is kept. */
const MAX_KEPT = 10_000;
/** Commits of a branch of its own that are compared each, to know the result for good. */
const MAX_OWN_COMMITS = 200;
/** Files that are named. */
const MAX_NAMED = 20;

const UNKNOWN: ForeignFiles = { files: [], count: 0, isUnknown: true };

/** What is known of a head. */
interface Known {
  /** The head of the main branch by which it was found out. */
  readonly main: Oid;
  readonly foreign: ForeignFiles | undefined;
  /**
   * The commit of the main branch that all commits of the branch agree with outside of the packages. Whichever of them the main branch contains
   * later, a merge changes nothing there: the result holds as long as the main branch only moves forward.
   */
  readonly base?: Oid | undefined;
  /** Where the result depends on the main branch: what the branch has in common with it. */
  readonly bases?: readonly Oid[] | undefined;
}

/** Compares trees of a repository, of which equal ones are not read, and keeps the result for each head. */
export class ComparedForeignFiles implements ForeignFileReader {
  readonly #git: GitRepository;
  readonly #index: Pick<RevisionIndex, 'isOnMain'>;
  readonly #known = new LruCache<string, Known>({ maxEntries: MAX_KEPT });

  constructor(git: GitRepository, index: Pick<RevisionIndex, 'isOnMain'>) {
    this.#git = git;
    this.#index = index;
  }

  async ofHead(head: MergedHead, main: Oid): Promise<ForeignFiles | undefined> {
    const key = keyOf(head.commit, head);
    const known = await this.#stillKnown(key, main);
    if (known !== undefined) return known.foreign;
    const found = await readable(this.#read(head, main), { main, foreign: UNKNOWN });
    // A main branch that has the head does not show what a merge brings: what was found before it had stays.
    if (found.base !== head.commit || !this.#known.has(key)) this.#known.set(key, found);
    return found.foreign;
  }

  async ofMerge(head: MergedHead, commit: Oid, base: Oid | undefined): Promise<ForeignFiles | undefined> {
    const { tree, parents } = await this.#git.readCommit(commit);
    const [onto, ...others] = parents;
    if (onto === undefined) return UNKNOWN;
    const isMoved = commit === head.commit;
    let start: Oid | undefined = onto;
    if (isMoved) {
      start = await this.#startOf(head, onto, base);
      if (start === undefined) return undefined;
    } else if (parents.length === 1) {
      // A rebase makes several commits, of which the host names the last one.
      start = await this.#beforeCommits(head, commit, base);
      if (start === undefined) return UNKNOWN;
      // Whatever the main branch had at other times: it can have been reset.
    } else start = await mainParent(this.#git, [onto, ...others], head.commit);
    const changed = this.#changed((await this.#git.readCommit(start)).tree, tree, head.paths);
    return readable(changed.then(listed), UNKNOWN);
  }

  /** Where the main branch was before a squash or a rebase; undefined if that is not known, as where the repository does not have the head. */
  async #beforeCommits(head: MergedHead, commit: Oid, reported: Oid | undefined): Promise<Oid | undefined> {
    if (!(await this.#has(head.commit))) return undefined;
    // A branch can have been rebuilt on a later commit than the one that the host reports.
    const isKnown = reported !== undefined && (await this.#has(reported));
    const base = isKnown ? await this.#latest([reported, head.base], commit) : undefined;
    const known = this.#known.get(keyOf(head.commit, head));
    const before = new Set([base ?? [], known?.main ?? []].flat());
    return startOfRebase(this.#git, { head: head.commit, commit, base, before });
  }

  /**
   * Where the main branch was before it was moved to a head, which makes no commit for the merge; undefined if the head was found to have no such
   * files before. The main branch can be in its history by another line than that of first parents.
   */
  async #startOf(head: MergedHead, onto: Oid, reported: Oid | undefined): Promise<Oid | undefined> {
    const known = this.#known.get(keyOf(head.commit, head));
    // Hosts can report a commit from when the pull request was opened.
    const before = await this.#latest([reported, known?.base, known?.main], head.commit);
    if (before !== undefined && before !== reported && known?.foreign === undefined) return undefined;
    return before ?? (await this.#latest([head.base], head.commit)) ?? onto;
  }

  async #latest(some: readonly (Oid | undefined)[], commit: Oid): Promise<Oid | undefined> {
    const present: Oid[] = [];
    for (const one of some) if (one !== undefined && (await this.#has(one))) present.push(one);
    return latestWithin(this.#git, present, commit);
  }

  async #has(oid: Oid): Promise<boolean> {
    const [stat] = isOid(oid) ? await this.#git.statObjects([oid]) : [];
    return stat?.type === 'commit';
  }

  async #stillKnown(key: string, main: Oid): Promise<Known | undefined> {
    const known = this.#known.get(key);
    if (known === undefined || known.main === main) return known;
    if (known.base === undefined || !(await this.#index.isOnMain(known.main, main))) return undefined;
    const moved = { ...known, main };
    this.#known.set(key, moved);
    return moved;
  }

  async #read(head: MergedHead, main: Oid): Promise<Known> {
    const { base } = head;
    const kept = await this.#keptBases(head, main);
    if (kept === undefined && base !== undefined && (await this.#has(base)) && (await this.#index.isOnMain(base, main)))
      if (await this.#agrees(head, base, main)) return { main, foreign: undefined, base };
    const bases = kept ?? (await mergeBases(this.#git, head.commit, main));
    if (bases === undefined || bases.length === 0) return { main, foreign: UNKNOWN };
    const outside = await this.#outside(head, bases);
    const [only, ...others] = bases;
    if (outside.size === 0 && only !== undefined && others.length === 0 && (await this.#agrees(head, only, main)))
      return { main, foreign: undefined, base: only };
    return { main, foreign: listed(await this.#unlike(head, main, outside)), bases };
  }

  /** What a head has in common with the main branch, if that has only got commits since that the branch does not have. */
  async #keptBases(head: MergedHead, main: Oid): Promise<readonly Oid[] | undefined> {
    const known = this.#known.get(keyOf(head.commit, head));
    if (known?.bases === undefined || !(await this.#index.isOnMain(known.main, main))) return undefined;
    const added = await commitsBeyond(this.#git, main, known.main);
    if (added === undefined) return undefined;
    const own = new Set([head.commit]);
    for (const oid of own) {
      if (known.bases.includes(oid)) continue;
      if (added.has(oid) || own.size > MAX_OWN_COMMITS) return undefined;
      for (const parent of (await this.#git.readCommit(oid)).parents) own.add(parent);
    }
    return known.bases;
  }

  /** Those that the main branch has otherwise: it has the others already, as where the branch that this one was based on was squashed. */
  async #unlike(head: MergedHead, main: Oid, files: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    if (files.size === 0) return files;
    const [here, there] = [await this.#git.readCommit(head.commit), await this.#git.readCommit(main)];
    const differing = await this.#changed(there.tree, here.tree, head.paths);
    return new Set([...files].filter((file) => differing.has(file)));
  }

  /** Whether all commits of the branch after `base` have what that has outside of the packages. */
  async #agrees(head: MergedHead, base: Oid, main: Oid): Promise<boolean> {
    const { tree: root } = await this.#git.readCommit(base);
    const own = new Set([head.commit]);
    for (const oid of own) {
      if (oid === base) continue;
      if (own.size > MAX_OWN_COMMITS) return false;
      const known = oid === head.commit ? undefined : await this.#stillKnown(keyOf(oid, head), main);
      if (known?.base === base) continue;
      const { tree, parents } = await this.#git.readCommit(oid);
      // It is not based on that one alone.
      if (parents.length === 0 || (await this.#changed(root, tree, head.paths)).size > 0) return false;
      for (const parent of parents) own.add(parent);
    }
    return true;
  }

  /** What a merge with these bases takes from the head: as Git merges, by the base that has changed a file where they differ. */
  async #outside({ commit, paths }: MergedHead, bases: readonly Oid[]): Promise<ReadonlySet<string>> {
    const { tree } = await this.#git.readCommit(commit);
    const trees: Oid[] = [];
    for (const base of bases) trees.push((await this.#git.readCommit(base)).tree);
    const differing: ReadonlySet<string>[] = [];
    for (const one of trees) differing.push(await this.#changed(one, tree, paths));
    const all = new Set(differing.flatMap((files) => [...files]));
    if (all.size === 0 || bases.length === 1) return all;
    const start = await this.#commonOf(bases);
    if (start === undefined) return all;
    const since: ReadonlySet<string>[] = [];
    for (const one of trees) since.push(await this.#changed(start, one, paths));
    const isOfBase = (file: string) =>
      trees.some(
        (_, at) => differing[at]?.has(file) === false && since.every((one, of) => of === at || !one.has(file)),
      );
    return new Set([...all].filter((file) => !isOfBase(file)));
  }

  /** The tree of a commit that all bases contain. */
  async #commonOf([first, ...others]: readonly Oid[]): Promise<Oid | undefined> {
    let common = first;
    for (const one of others) common = common && (await mergeBase(this.#git, common, one));
    return common && (await this.#git.readCommit(common)).tree;
  }

  async #changed(before: Oid, after: Oid, paths: readonly string[]): Promise<ReadonlySet<string>> {
    if (before === after) return new Set();
    const isInside = (file: string) =>
      paths.some((path) => path === '' || file === path || file.startsWith(`${path}/`));
    const changes = await this.#git.diffTrees(before, after);
    return new Set(changes.flatMap(({ path }) => (isInside(path) ? [] : path)));
  }
}

/** `otherwise` where a push brought trees that cannot be read, or differ in more files than are compared. */
async function readable<Result>(reading: Promise<Result>, otherwise: Result): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return otherwise;
  }
}

function keyOf(commit: Oid, { paths }: Pick<MergedHead, 'paths'>): string {
  return [commit, ...paths].join('\n');
}

function listed(files: ReadonlySet<string>): ForeignFiles | undefined {
  if (files.size === 0) return undefined;
  return { files: [...files].sort().slice(0, MAX_NAMED), count: files.size };
}
