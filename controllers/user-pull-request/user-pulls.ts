import type { Forge, PullRequest } from '../../src/forge/forge.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';

/** Open pull requests that are followed; those that changed last. */
const MAX_OPEN = 2000;
/** Those that one poll reads. */
const MAX_UPDATED = 500;
const EPOCH = '1970-01-01T00:00:00Z';

/** What was checked last of a pull request. */
interface Checked {
  readonly head: Oid;
  readonly mainHead: Oid;
  /** The trees on the main branch of the packages that it changes, by path. */
  readonly onMain: ReadonlyMap<string, Oid | undefined>;
}

/** What was written last, so that nothing is written twice. */
interface Written {
  checks?: string;
  comment?: string;
  /** Address of the last comment with a command that was carried out or refused. */
  handled?: string;
}

interface Entry {
  updatedAt: string;
  /** The change may be one of several in the same second: looked at once more. */
  isFresh: boolean;
  checked?: Checked;
  readonly written: Written;
}

/**
 * The open pull requests of users to one branch. What is here decides only what to look at: state is read from the host again before every effect.
 */
export class UserPulls {
  readonly forge: Forge;
  readonly #base: string;
  readonly #open = new Map<number, Entry>();
  /** The time of the last change, by the clock of the host; undefined until all open ones were read. */
  #since: string | undefined;
  #policies: string | undefined;

  constructor(forge: Forge, base: string) {
    this.forge = forge;
    this.#base = base;
  }

  has(number: number): boolean {
    return this.#open.has(number);
  }

  /** False for those of Sluice's own proposals, and to other branches. */
  isOfUser({ head, base }: PullRequest): boolean {
    return base.branch === this.#base && !(head.isSameRepository && head.branch.startsWith('proposed/'));
  }

  /** Reads what changed since the last call. Returns the numbers of the pull requests to look at. */
  async poll(
    { repository, policies }: { readonly repository: PackageRepository; readonly policies: string },
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const changed = new Set<number>();
    for (const [number, entry] of this.#open) {
      if (entry.isFresh || this.#policies !== policies) changed.add(number);
      entry.isFresh = false;
    }
    for (const number of await this.#movedOnMain(repository)) changed.add(number);
    const pulls =
      this.#since === undefined
        ? await this.forge.listOpen(this.#base, MAX_OPEN, signal)
        : await this.forge.listUpdated(this.#since, MAX_UPDATED, signal);
    for (const pull of pulls) {
      if (pull.updatedAt > (this.#since ?? EPOCH)) this.#since = pull.updatedAt;
      const known = this.#open.get(pull.number);
      if (known?.updatedAt === pull.updatedAt) continue;
      if (known === undefined && (pull.state !== 'open' || !this.isOfUser(pull))) continue;
      changed.add(pull.number);
      this.#open.set(pull.number, { written: {}, ...known, updatedAt: pull.updatedAt, isFresh: true });
    }
    this.#since ??= EPOCH;
    this.#policies = policies;
    return [...changed];
  }

  /** Those whose packages are no longer the same on the main branch: one request to Git for all. */
  async #movedOnMain({ index, git }: PackageRepository): Promise<readonly number[]> {
    const { mainHead } = index;
    if (mainHead === undefined) return [];
    const outdated = [...this.#open].filter(
      ([, { checked }]) => checked !== undefined && checked.mainHead !== mainHead && checked.onMain.size > 0,
    );
    const paths = [...new Set(outdated.flatMap(([, { checked }]) => [...(checked?.onMain.keys() ?? [])]))];
    const stats = await git.statObjects(paths.map((path) => `${mainHead}:${path}`));
    const trees = new Map(paths.map((path, at) => [path, stats[at]?.oid]));
    return outdated.flatMap(([number, { checked }]) =>
      [...(checked?.onMain ?? [])].some(([path, tree]) => trees.get(path) !== tree) ? [number] : [],
    );
  }

  note(number: number, checked: Checked): void {
    const entry = this.#open.get(number);
    if (entry !== undefined) entry.checked = checked;
  }

  writtenOf(number: number): Written {
    return this.#open.get(number)?.written ?? {};
  }

  forget(number: number): void {
    this.#open.delete(number);
  }
}
