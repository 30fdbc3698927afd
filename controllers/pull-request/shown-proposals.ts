import type { Comment, PullRequest, Review } from '../../src/forge/forge.ts';
import { DEFAULT_NAMESPACE, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { type CommandState, MAX_COMMENTS, type SharedComments } from './commands/apply-commands.ts';
import type { NamedCommand } from './commands/describe-commands.ts';
import type { PullRequests } from './pull-requests.ts';

/** The last attempt to merge, which is not repeated while nothing has changed and it is not time. */
export interface MergeAttempt {
  /** When the pull request had changed last. */
  readonly of: string;
  readonly commit: string;
  /** The head of the main branch. */
  readonly onto: string | undefined;
  readonly delay: number;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** A pull request of one or more proposals, with what was written last, so that nothing is written twice. */
export interface ShownPull {
  readonly branch: string;
  readonly pulls: PullRequests;
  readonly number: number;
  /** Its proposals, by their keys as text. */
  readonly members: Map<string, Shown>;
  /**
   * Commits that this process has written to the branch of a batch, or found to be what it would write, after the text listed their proposals.
   * Users can write to the branch and the text, so that neither shows by itself what Sluice has shown.
   */
  readonly heads: Set<string>;
  text?: string;
  checks?: string;
  /** Commits of merge queues that merge it and wait for its checks. */
  queued?: readonly string[];
  isPrepared?: boolean;
  /** Its head and that of the main branch for which the host last stated whether it can merge. */
  mergeableAt?: string;
  /** Those for which it has not found out, in milliseconds since the epoch. */
  unknown?: { readonly heads: string; readonly sinceMs: number };
  /** A merge on the host publishes it, and Sluice has no reason against it. */
  awaitsMerge?: boolean;
  /** This process has opened it and set no check yet, so that there is none. */
  hasNoChecks?: boolean;
  /** Since when it waits for reviews of members to be read, milliseconds since the epoch. */
  unreadSinceMs?: number;
  /** The reply to commands as it was written last, if several proposals share it. */
  reply?: string;
  /** What was executed since the start of the process, also for proposals that have ended since. */
  readonly executed: Map<string, NamedCommand>;
  /** Comments since a time, as they were read when this was the state of the pull request. */
  comments?: { readonly of: PullRequest; readonly since: string; readonly list: Promise<readonly Comment[]> };
  /** As they were read when this was the state of the pull request. */
  reviews?: { readonly of: PullRequest; readonly list: readonly Review[] };
}

/** A proposal with the pull request that it is in. */
export interface Shown {
  /** Of the revision. */
  readonly key: ObjectKey;
  readonly proposal: string;
  readonly pull: ShownPull;
  readonly commands: CommandState;
  readonly merging: { attempt?: MergeAttempt };
  /** The content that the head was last seen with, and the time of the last change until then, by the clock of the host. */
  seen?: { readonly content: string; readonly at: string };
}

/** The proposals with pull requests, by repository and revision. */
export class ShownProposals {
  readonly #byRepository = new Map<string, Map<string, Shown>>();
  /** By branch. */
  readonly #pulls = new WeakMap<PullRequests, Map<string, ShownPull>>();

  /** The pull request of a branch, with what is known of it if it has this number. */
  pullOf(pulls: PullRequests, branch: string, number: number): ShownPull {
    const ofBranches = this.#pulls.get(pulls) ?? new Map<string, ShownPull>();
    this.#pulls.set(pulls, ofBranches);
    const known = ofBranches.get(branch);
    if (known?.number === number) return known;
    const made = { branch, pulls, number, members: new Map(), heads: new Set<string>(), executed: new Map() };
    ofBranches.set(branch, made);
    return made;
  }

  /** Drops what is kept of a branch. */
  forget(pulls: PullRequests, branch: string): void {
    this.#pulls.get(pulls)?.delete(branch);
    pulls.forget(branch);
  }

  get(revision: ObjectKey): Shown | undefined {
    return this.#byRepository.get(keyText(repositoryOf(revision)))?.get(keyText(revision));
  }

  set(shown: Shown): void {
    const repository = keyText(repositoryOf(shown.key));
    const known = this.#byRepository.get(repository) ?? new Map<string, Shown>();
    known.get(keyText(shown.key))?.pull.members.delete(keyText(shown.key));
    this.#byRepository.set(repository, known.set(keyText(shown.key), shown));
    shown.pull.members.set(keyText(shown.key), shown);
  }

  delete(revision: ObjectKey): void {
    const repository = keyText(repositoryOf(revision));
    const known = this.#byRepository.get(repository);
    known?.get(keyText(revision))?.pull.members.delete(keyText(revision));
    known?.delete(keyText(revision));
    if (known?.size === 0) this.#byRepository.delete(repository);
  }

  inRepository(repository: ObjectKey): readonly Shown[] {
    return [...(this.#byRepository.get(keyText(repository))?.values() ?? [])];
  }
}

/** The comments of a pull request that several proposals share, for one of them. */
export function sharedComments(
  entry: ShownPull,
  of: PullRequest,
  { name }: ObjectKey,
  signal: AbortSignal,
): SharedComments {
  const { pulls, number, members, executed } = entry;
  return {
    names: [...members.values()].map(({ key }) => key.name).sort(),
    read: (since) => {
      const known = entry.comments;
      if (known?.of === of && known.since === since) return known.list;
      const list = pulls.forge.comments(number, since, MAX_COMMENTS, signal);
      entry.comments = { of, since, list };
      list.catch(() => {
        delete entry.comments;
      });
      return list;
    },
    note: (one) => void executed.set(`${one.id} ${name}`, { name, executed: one }),
  };
}

/** The repository of a revision: its name begins with that of the repository, which is a DNS label. */
export function repositoryOf({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): ObjectKey {
  return { namespace, name: name.split('.', 1)[0] ?? '' };
}
