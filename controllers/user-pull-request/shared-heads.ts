import { type Check, type Forge, MAX_ANNOTATIONS, type PullRequest } from '../../src/forge/forge.ts';
import { KeyedMutex } from '../../src/foundation/concurrency/mutex.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { hasOwnName } from '../pull-request/own-branch.ts';
import { inlineCode, plainLine } from '../pull-request/text/quote.ts';
import { MAX_TITLE_CHARACTERS } from './describe-user-pull.ts';
import { type HeadedPull, MAX_OPEN, type UserPulls } from './reading/user-pulls.ts';

/** An open pull request. */
interface PullPlace {
  /** Identity of the Git repository. */
  readonly git: string;
  readonly base: string;
  readonly number: number;
}

interface Entry extends PullPlace {
  /** False for one from a fork. */
  readonly isSameRepository: boolean;
  /** Id of the Repository that reads it. */
  readonly owner: string;
  readonly commit: string;
  readonly checks: readonly Check[];
  /** Numbers of those with the same head without which it was checked. */
  readonly unchecked: Iterable<number>;
  /** Has it checked again. */
  readonly wake: () => void;
}

const STATES = ['failure', 'pending', 'success'] as const;
/** Pull requests that the text of a check lists, the worst first. */
const MAX_LISTED = 20;
/** How long a list of the pull requests to a branch suffices, which many checks ask for at a start. */
const LIST_MS = 10_000;
const MAX_LISTS = 32;

/** By commit of their heads. */
type OpenPulls = ReadonlyMap<string, readonly HeadedPull[]>;

/**
 * Hosts keep checks by commit: open pull requests with the same head, to one branch or to several, show the same ones. A check of one of them would
 * otherwise stand for another one, which it does not judge. Those from forks take no part where the repository itself has one to the same branch:
 * each user could open one for a commit of another user, and hold up that one. One to another branch takes part, since nothing else judges that.
 */
export class SharedHeads {
  /** By Git repository and commit, then by number. */
  readonly #byHead = new Map<string, Map<number, Omit<Entry, 'unchecked'> & { readonly unchecked: Set<number> }>>();
  /** The checks of each, as they were written last: of whichever pull request, so that each notices what another one has written over. */
  readonly #written = new Map<string, string>();
  /** Where each is, by Git repository and number. */
  readonly #places = new Map<string, string>();
  readonly #writing = new KeyedMutex();
  /** By Git repository and branch. */
  readonly #lists = new LruCache<string, { readonly pulls: OpenPulls; readonly readMs: number }>({
    maxEntries: MAX_LISTS,
  });

  /**
   * Takes over the checks of a pull request, and has those of all with its head written if they are others than were written last, one call for a
   * commit at a time. With `isForced` also if they are the same.
   */
  async write(entry: Entry, isForced: boolean, write: (checks: readonly Check[]) => Promise<void>): Promise<void> {
    const place = placeOf(entry);
    if (this.#places.get(numberOf(entry)) !== place) this.leave(entry);
    await this.#writing.run(place, async () => {
      const all = this.#byHead.get(place) ?? new Map();
      all.set(entry.number, { ...entry, unchecked: new Set(entry.unchecked) });
      this.#byHead.set(place, all);
      this.#places.set(numberOf(entry), place);
      this.#end(place, entry.number);
      const checks = checksOfAll([...all.values()]);
      const text = JSON.stringify(checks);
      if (!isForced && this.#written.get(place) === text) return;
      // A failure can follow the effect: then it is not known which checks the host has.
      this.#written.delete(place);
      await write(checks);
      if (this.#byHead.has(place)) this.#written.set(place, text);
    });
  }

  /** Those to a branch with this head, as the host lists them. Which of them that have the names of proposals are of users is not known yet. */
  async search(
    { git, base, commit }: Pick<Entry, 'git' | 'base' | 'commit'>,
    nowMs: number,
    list: () => Promise<readonly PullRequest[]>,
  ): Promise<readonly HeadedPull[]> {
    const id = `${git} ${base}`;
    let known = this.#lists.get(id);
    if (known === undefined || nowMs - known.readMs >= LIST_MS) {
      const ofUsers = (await list()).filter(({ head }) => !(head.isSameRepository && hasOwnName(head.branch)));
      const byHead = Map.groupBy(ofUsers, ({ head }) => head.commit);
      const pulls = new Map(
        [...byHead].map(([of, all]) => [of, all.map(({ number, head }) => ({ ...head, number }))] as const),
      );
      known = { pulls, readMs: nowMs };
      this.#lists.set(id, known);
    }
    return known.pulls.get(commit) ?? [];
  }

  has(pull: PullPlace, commit: string): boolean {
    return this.#places.get(numberOf(pull)) === placeOf({ ...pull, commit });
  }

  /** Whether a commit is the head of an open pull request. */
  hasHead(head: Pick<Entry, 'git' | 'commit'>): boolean {
    return this.#byHead.has(placeOf(head));
  }

  /** It has ended, or has another head. `commit`: its head, also if it was never checked. */
  leave(pull: PullPlace, commit?: string): void {
    const before = this.#places.get(numberOf(pull));
    this.#places.delete(numberOf(pull));
    if (before !== undefined) {
      const others = this.#byHead.get(before);
      others?.delete(pull.number);
      if (others?.size === 0) {
        this.#byHead.delete(before);
        this.#written.delete(before);
      }
      // One writes for all.
      for (const { wake } of [...(others?.values() ?? [])].slice(0, 1)) wake();
    }
    const last = commit === undefined ? before : placeOf({ ...pull, commit });
    if (last !== undefined) this.#end(last, pull.number);
  }

  /** A proposal has this head: its checks are written over those of pull requests of users. */
  discard(head: Pick<Entry, 'git' | 'commit'>): void {
    this.#written.delete(placeOf(head));
  }

  /** Those that wait for this one alone are checked again: each once, whatever number it waits for. */
  #end(place: string, number: number): void {
    for (const { unchecked, wake } of this.#byHead.get(place)?.values() ?? [])
      if (unchecked.delete(number) && unchecked.size === 0) wake();
  }

  /** What this Repository has written is not followed any more. */
  leaveOwner(owner: string): void {
    const all = [...this.#byHead.values()].flatMap((entries) => [...entries.values()]);
    for (const one of all) if (one.owner === owner) this.leave(one);
  }
}

/** A branch whose pull requests of users are checked. */
export interface CheckedBase {
  readonly base: string;
  /** Those that are read; undefined while its Repository is not open. */
  readonly pulls: Pick<UserPulls, 'hasBegun' | 'withHead'> | undefined;
}

export interface UncheckedPull {
  readonly base: string;
  readonly number: number;
  /** Nothing wakes once it is checked. */
  readonly isSearched: boolean;
}

/** Open pull requests with the head of one that are not checked yet. Those to a branch that is not read yet are searched on the host. */
export async function uncheckedWithHead(
  heads: SharedHeads,
  { git, pull, bases, forge }: { git: string; pull: PullRequest; bases: readonly CheckedBase[]; forge: Forge },
  { nowMs, signal }: { readonly nowMs: number; readonly signal: AbortSignal },
): Promise<readonly UncheckedPull[]> {
  const { commit, isSameRepository } = pull.head;
  const found: UncheckedPull[] = [];
  for (const { base, pulls } of bases) {
    const isBase = base === pull.base.branch;
    const isSearched = pulls?.hasBegun !== true && !isBase;
    const list = () => forge.listOpen(base, MAX_OPEN, signal);
    const all = isSearched ? await heads.search({ git, base, commit }, nowMs, list) : (pulls?.withHead(commit) ?? []);
    const hasOwn = (isBase && isSameRepository) || all.some((one) => one.isSameRepository);
    for (const one of all) {
      const { number } = one;
      if (number === pull.number || (hasOwn && !one.isSameRepository)) continue;
      if (!heads.has({ git, base, number }, commit)) found.push({ base, number, isSearched });
    }
  }
  return found;
}

function placeOf({ git, commit }: Pick<Entry, 'git' | 'commit'>): string {
  return `${git} ${commit}`;
}

function numberOf({ git, number }: PullPlace): string {
  return `${git} ${number}`;
}

function nameOf({ number, base, isSameRepository }: Pick<Entry, 'number' | 'base' | 'isSameRepository'>): string {
  return `#${number} to ${base}${isSameRepository ? '' : ' from a fork'}`;
}

/** The worst of each name; its text lists how it is with each pull request. */
function checksOfAll(known: readonly Omit<Entry, 'unchecked'>[]): readonly Check[] {
  const own = new Set(known.flatMap(({ isSameRepository, base }) => (isSameRepository ? [base] : [])));
  const entries = known.filter(({ isSameRepository, base }) => isSameRepository || !own.has(base));
  const [first] = entries;
  if (first === undefined || entries.length === 1) return first?.checks ?? [];
  const named = entries.flatMap((entry) => entry.checks.map((check) => ({ of: nameOf(entry), check, entry })));
  return [...Map.groupBy(named, ({ check }) => check.name)].map(([name, unsorted]) => {
    const place = ({ check, entry }: (typeof named)[number]) => STATES.indexOf(check.state) * 1e9 + entry.number;
    const all = unsorted.sort((a, b) => place(a) - place(b));
    const listed = all.slice(0, MAX_LISTED);
    const rows = listed.map(({ of, check: { state, title } }) => {
      const shown = state === 'success' ? state : `**${state}**`;
      return `| ${inlineCode(of)} | ${shown} | ${inlineCode(title)} |`;
    });
    if (all.length > listed.length) rows.push(`| ${all.length - listed.length} more | | |`);
    const table = ['| Pull request with this head | State | Packages |', '|---|---|---|', ...rows].join('\n');
    const texts = listed.flatMap(({ of, check: { text } }) =>
      text === undefined ? [] : `${inlineCode(of)}:\n\n${text}`,
    );
    const annotations = listed.flatMap((one) => one.check.annotations ?? []).slice(0, MAX_ANNOTATIONS);
    const [worst] = all;
    return {
      ...{ name, state: worst?.check.state ?? 'pending' },
      title: plainLine(`${worst?.of}: ${worst?.check.title}`, MAX_TITLE_CHARACTERS),
      text: [table, ...texts].join('\n\n'),
      ...(annotations.length === 0 ? {} : { annotations }),
    };
  });
}
