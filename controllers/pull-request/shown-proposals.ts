import { z } from 'zod';
import type { Comment, PullRequest, Review } from '../../src/forge/forge.ts';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../src/package/model/revision/package-revision.ts';
import { DEFAULT_NAMESPACE, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { isBatchBranch } from './batch/batch-name.ts';
import type { CommandState } from './commands/apply-commands.ts';
import type { NamedCommand } from './commands/describe-commands.ts';
import type { AwaitedMerge } from './merged/awaited-merge.ts';
import type { PullRequests } from './pull-requests.ts';
import type { MappedRights } from './reviews/mapped-rights.ts';

/** Heads of a pull request that are remembered; each write makes one. Of them, the last ones outlive the process. */
const MAX_HEADS = 1000;
const MAX_NOTED_HEADS = 5;
/** What outlives the process is left out where it has grown beyond that, so that commands are refused, and have to be written again. */
const MAX_NOTES = 20_000;

/** Texts by key that outlive the process, in a place that users of the Git host cannot write. */
export interface ShownNotes {
  get(key: string): string | undefined;
  set(key: string, value: string): unknown;
  delete(key: string): unknown;
  entries(): Iterable<[string, string]>;
}

const headsSchema = z.array(z.string());
const seenSchema = z.object({ proposal: z.string(), url: z.string(), content: z.string(), at: z.string() });

/** A pull request of one or more proposals, with what was written last, so that nothing is written twice. */
export interface ShownPull {
  readonly branch: string;
  readonly pulls: PullRequests;
  readonly number: number;
  /** Address of its page. */
  readonly url: string;
  /** Its proposals, by their keys as text. */
  readonly members: Map<string, Shown>;
  /**
   * Commits that this process has written to the branch of a batch, or found to be what it would write, after the text listed their proposals.
   * Users can write to the branch and the text, so that neither shows by itself what Sluice has shown.
   */
  readonly heads: LruCache<string, true>;
  /** Those that an earlier process had written last. */
  readonly earlierHeads: readonly string[];
  text?: string;
  /** The section of Sluice as the host returned it when it was written last. */
  ownPart?: string;
  /** The title that Sluice gave it, if several proposals share it; users may change it. */
  title?: string;
  /** The one that it has sent last, whether or not the host has taken it over. */
  triedTitle?: string;
  /** The checks as they were written last; undefined while it is not known which ones the host has. */
  checks?: string;
  /** Commits of merge queues that merge it and wait for its checks. */
  queued?: readonly string[];
  isPrepared?: boolean;
  /** The reviewers of its policy that were requested, as far as this process knows, and those that the host refused, with the messages. */
  requested?: ReviewPolicy['reviewers'];
  refused?: ReadonlyMap<string, string>;
  /** Its head and that of the main branch for which the host last stated whether it can merge; `isFinal` if that is not read once more. */
  mergeableAt?: { readonly heads: string; readonly readMs: number; readonly isFinal: boolean };
  /** Those for which it has not found out, in milliseconds of running time. */
  unknown?: { readonly heads: string; readonly sinceMs: number };
  /** A merge on the host publishes it, and Sluice has no reason against it. */
  awaitsMerge?: boolean;
  /** Its branch has changes outside of its package, compared with the main branch as it was then. */
  hasForeignFiles?: boolean;
  /** This process has opened it and set no check yet, so that there is none. */
  hasNoChecks?: boolean;
  /** Since when it waits for reviews of members to be read, in milliseconds of running time. */
  unreadSinceMs?: number;
  /** The reply to commands as it was written last, if several proposals share it. */
  reply?: string;
  /** The revisions, by their keys as text, of which it was reported that its merge publishes nothing. */
  outside?: Set<string>;
  /** What was executed since the start of the process, also for proposals that have ended since. */
  readonly executed: Map<string, NamedCommand>;
  /** Comments since a time, as they were read when this was the state of the pull request. */
  comments?: { readonly of: PullRequest; readonly since: string; readonly list: Promise<readonly Comment[]> };
  /** As they were read when this was the state of the pull request. */
  reviews?: { readonly of: PullRequest; readonly list: readonly Review[]; readonly readMs: number };
}

/** A proposal with the pull request that it is in. */
export interface Shown {
  /** Of the revision. */
  readonly key: ObjectKey;
  readonly proposal: string;
  readonly pull: ShownPull;
  readonly commands: CommandState;
  /** The host has merged it, and it could not be published yet. */
  awaited?: AwaitedMerge;
  /** The comment of why, as it was written last; empty while it is not known which one the host has. */
  notPublished?: string;
  /** The host has such a comment, which an earlier process may have written: nothing but the comment depends on it. */
  isCommented?: boolean;
  /** As it was read last. */
  last?: { readonly revision: Revision; readonly review: ReviewPolicy };
  /** Of the users whom its policy maps, who may approve it. */
  rights?: MappedRights;
  /** The content that the head was last seen with, and the time of the last change until then, by the clock of the host. */
  seen?: { readonly content: string; readonly at: string };
  /** It was an earlier process that saw it, and this one has not seen the head yet. */
  isSeenEarlier?: boolean;
}

/**
 * The proposals with pull requests, by repository and revision. What shared pull requests have shown outlives the process: commands that were
 * written while none ran count for that alone.
 */
export class ShownProposals {
  readonly #notes: ShownNotes;
  readonly #byRepository = new Map<string, Map<string, Shown>>();
  /** By branch. */
  readonly #pulls = new WeakMap<PullRequests, Map<string, ShownPull>>();

  constructor(notes: ShownNotes = new Map<string, string>()) {
    this.#notes = notes;
    const keys = [...notes.entries()].map(([key]) => key);
    if (keys.length > MAX_NOTES) for (const key of keys) notes.delete(key);
  }

  /** The pull request of a branch, with what is known of it if it has this number. */
  pullOf(pulls: PullRequests, branch: string, { number, url }: Pick<PullRequest, 'number' | 'url'>): ShownPull {
    const ofBranches = this.#pulls.get(pulls) ?? new Map<string, ShownPull>();
    this.#pulls.set(pulls, ofBranches);
    const known = ofBranches.get(branch);
    if (known?.number === number) return known;
    const made = {
      branch,
      pulls,
      number,
      url,
      members: new Map(),
      heads: new LruCache<string, true>({ maxEntries: MAX_HEADS }),
      executed: new Map(),
      earlierHeads: this.#noted(headsKey(url), headsSchema) ?? [],
    };
    for (const head of made.earlierHeads) made.heads.set(head, true);
    ofBranches.set(branch, made);
    return made;
  }

  /** This process has written a head of a shared pull request, or would write the same. */
  noteHead({ heads, url }: ShownPull, head: string): void {
    heads.set(head, true);
    const before = this.#noted(headsKey(url), headsSchema) ?? [];
    const noted = [...before.filter((one) => one !== head), head].slice(-MAX_NOTED_HEADS);
    this.#notes.set(headsKey(url), JSON.stringify(noted));
  }

  /**
   * Whether Sluice has written the present head of a shared pull request. While it is that of a user, it does not show what is proposed, which is
   * forgotten then. What an earlier process has seen counts only if the head is still one of that process.
   */
  isOwnHead(shown: Shown, head: string): boolean {
    const { heads, earlierHeads } = shown.pull;
    const isSame = shown.isSeenEarlier !== true || earlierHeads.includes(head);
    delete shown.isSeenEarlier;
    if (!isSame || !heads.has(head)) this.noteSeen(shown, undefined);
    return heads.has(head);
  }

  /** The head of the pull request has been seen with this content of the proposal; undefined: it has not. */
  noteSeen(shown: Shown, seen: Shown['seen']): void {
    if (seen === undefined) delete shown.seen;
    else shown.seen = seen;
    if (!isBatchBranch(shown.pull.branch)) return;
    if (seen === undefined) this.#notes.delete(seenKey(shown.key));
    else {
      const { proposal, pull } = shown;
      this.#notes.set(seenKey(shown.key), JSON.stringify({ proposal, url: pull.url, ...seen }));
    }
  }

  #noted<T>(key: string, schema: z.ZodType<T>): T | undefined {
    const text = this.#notes.get(key);
    if (text === undefined) return undefined;
    try {
      return schema.safeParse(JSON.parse(text)).data;
    } catch {
      // A damaged note counts as none: then commands are refused, and have to be written again.
      return undefined;
    }
  }

  /** Drops what is kept of a branch. */
  forget(pulls: PullRequests, branch: string): void {
    const known = this.#pulls.get(pulls)?.get(branch);
    if (known !== undefined) this.#notes.delete(headsKey(known.url));
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
    const noted = this.#noted(seenKey(shown.key), seenSchema);
    if (shown.seen !== undefined || noted?.proposal !== shown.proposal || noted.url !== shown.pull.url) return;
    shown.seen = { content: noted.content, at: noted.at };
    shown.isSeenEarlier = true;
  }

  delete(revision: ObjectKey): void {
    const repository = keyText(repositoryOf(revision));
    const known = this.#byRepository.get(repository);
    known?.get(keyText(revision))?.pull.members.delete(keyText(revision));
    known?.delete(keyText(revision));
    this.#notes.delete(seenKey(revision));
    if (known?.size === 0) this.#byRepository.delete(repository);
  }

  inRepository(repository: ObjectKey): readonly Shown[] {
    return [...(this.#byRepository.get(keyText(repository))?.values() ?? [])];
  }
}

/** The repository of a revision: its name begins with that of the repository, which is a DNS label. */
export function repositoryOf({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): ObjectKey {
  return { namespace, name: name.split('.', 1)[0] ?? '' };
}

function headsKey(url: string): string {
  return `heads ${url}`;
}

function seenKey(revision: ObjectKey): string {
  return `seen ${keyText(revision)}`;
}
