import type { Check, PullRequest, Review } from '../../src/forge/forge.ts';
import { canonicalJson, digest } from '../../src/foundation/text/canonical-json.ts';
import { DEFAULT_NAMESPACE, keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import type { CommandState } from './commands/apply-commands.ts';
import type { PullRequests } from './pull-requests.ts';

/** The last attempt to merge, which is not repeated while nothing has changed and it is not time. */
export interface MergeAttempt {
  /** When the pull request had changed last. */
  readonly of: string;
  readonly commit: string;
  readonly delay: number;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** A proposal with a pull request. */
export interface Shown {
  /** Of the revision. */
  readonly key: ObjectKey;
  readonly proposal: string;
  readonly branch: string;
  readonly pulls: PullRequests;
  readonly number: number;
  /** What was written last, so that nothing is written twice. */
  text?: string;
  checks?: string;
  /** Commits of merge queues that merge it and wait for its checks. */
  queued?: readonly string[];
  isPrepared?: boolean;
  /** The proposed commit and the head of the main branch for which the host was last asked whether it can merge. */
  mergeableAt?: string;
  /** This process has opened it and set no check yet, so that there is none. */
  hasNoChecks?: boolean;
  readonly commands: CommandState;
  readonly merging: { attempt?: MergeAttempt };
  /** The content that the head was last seen with, and the time of the last change until then, by the clock of the host. */
  seen?: { readonly content: string; readonly at: string };
  /** As they were read when this was the state of the pull request. */
  reviews?: { readonly of: PullRequest; readonly list: readonly Review[] };
}

/** The proposals with pull requests, by repository and revision. */
export class ShownProposals {
  readonly #byRepository = new Map<string, Map<string, Shown>>();

  get(revision: ObjectKey): Shown | undefined {
    return this.#byRepository.get(keyText(repositoryOf(revision)))?.get(keyText(revision));
  }

  set(shown: Shown): void {
    const repository = keyText(repositoryOf(shown.key));
    const known = this.#byRepository.get(repository) ?? new Map<string, Shown>();
    this.#byRepository.set(repository, known.set(keyText(shown.key), shown));
  }

  delete(revision: ObjectKey): void {
    const repository = keyText(repositoryOf(revision));
    const known = this.#byRepository.get(repository);
    known?.delete(keyText(revision));
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

/** What `Shown.checks` compares. */
export function checksTextOf(commit: string, checks: readonly Check[]): string {
  return `${commit} ${digest(canonicalJson(checks))}`;
}

/** Whether the checks that were written last are of this commit. */
export function isCheckedAt({ checks }: Pick<Shown, 'checks'>, commit: string): boolean {
  return checks?.startsWith(`${commit} `) === true;
}
