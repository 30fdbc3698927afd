import type { ForgeProvider } from '../forge.ts';

/**
 * What a host reports:
 * - `pull-request`: opened, pushed to, merged, closed, edited;
 * - `review`, `comment`: submitted, changed or removed;
 * - `check`: a check or status of a commit changed, or a user requests that it runs again;
 * - `merge-group`: a queue asks for the checks of `commit`;
 * - `access`: the app was installed, suspended or removed, or its repositories changed;
 * - `renamed`: the repository has another name or owner.
 */
export type ForgeHintKind = 'pull-request' | 'review' | 'comment' | 'check' | 'merge-group' | 'access' | 'renamed';

/**
 * That something may have changed at the host. It wakes whoever reads the host, and is never a source of facts: all fields are as the message
 * claims them.
 */
export interface ForgeHint {
  readonly kind: ForgeHintKind;
  /** Absent if the message names none: any pull request may be affected. */
  readonly pullRequest?: number;
  /** Name without `refs/heads/`. */
  readonly branch?: string;
  readonly commit?: string;
}

/** A repository as a message names it. */
export interface NamedRepository {
  /** The number at the host, which does not change when it is renamed. */
  readonly id: string;
  /** `owner/name`. */
  readonly name: string;
  /** The name until now, in a message that it was renamed. */
  readonly formerName?: string;
  /** Addresses of the repository, or of its owner, at the host. At least one. */
  readonly urls: readonly string[];
}

/** What one authenticated message reports. */
export interface ForgeMessage {
  readonly provider: ForgeProvider;
  /** Several only for messages about an installation. */
  readonly repositories: readonly NamedRepository[];
  /** Each of them is about each of the repositories. */
  readonly hints: readonly ForgeHint[];
}
