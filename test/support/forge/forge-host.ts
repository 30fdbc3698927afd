import { expect, type TestOptions } from 'vitest';
import type { Annotation, Check, Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { MergeMethod } from '../../../src/forge/forge-merging.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';

/** A new repository on a host, as its users see it. `main` has one commit. */
export interface ForgeHost {
  /** As the user `names.sluice`. */
  readonly forge: Forge;
  /** Whether the host limits requests that create content, which its budget counts. */
  readonly createsContent: boolean;
  readonly names: {
    readonly sluice: string;
    /** Users who may push. */
    readonly anna: string;
    readonly ben: string;
    /** A team that exists; undefined where the owner has none. */
    readonly team?: string;
    /** What the host reports to the user `sluice` of users who may push, and of others. */
    readonly permissions: { readonly writer: boolean | undefined; readonly other: boolean | undefined };
  };
  /** The same repository with another token, or another repository. */
  connect(other: { readonly token?: 'unknown' | 'read-only'; readonly name?: string }): Promise<Forge>;
  /** What errors must not contain. */
  readonly secrets: readonly string[];
  /** Adds a commit to a branch, created from `main` if there is none, with a new file or to `file`. Returns the commit. */
  commit(branch: string, file?: string): Promise<string>;
  /** Protects a branch: nothing is pushed to it, and a check has to succeed, or heads have to contain it, before a merge. */
  protect(branch: string, rules: { readonly check?: string; readonly upToDate?: boolean }): Promise<void>;
  /** Permits these methods of merging only. */
  permitMethods(methods: readonly MergeMethod[]): Promise<void>;
  /** Messages of the last commits of a branch, newest first. */
  log(branch: string, count: number): Promise<readonly string[]>;
  /** Creates a branch at a commit. */
  branch(name: string, commit: string): Promise<void>;
  deleteBranch(branch: string): Promise<void>;
  /** A user forks the repository, and opens a pull request from a branch of this name in the fork. Returns its number. */
  openFromFork(user: string, branch: string): Promise<number>;
  review(user: string, number: number, verdict: 'approve' | 'request-changes' | 'comment'): Promise<void>;
  dismiss(user: string, number: number, review: string): Promise<void>;
  /** Adds a user to a team. Returns its name, with that of its organization. */
  join(user: string): Promise<string>;
  leave(user: string): Promise<void>;
  comment(user: string, number: number, text: string): Promise<void>;
  /** Changes the text of a comment. */
  editComment(user: string, id: string, text: string): Promise<void>;
  setState(user: string, number: number, state: 'open' | 'closed'): Promise<void>;
  setBase(user: string, number: number, base: string): Promise<void>;
  /** Opens an issue. Returns its number. */
  openIssue(user: string, title: string, body: string): Promise<number>;
  changeIssue(
    user: string,
    number: number,
    change: { readonly state?: 'open' | 'closed'; readonly body?: string },
  ): Promise<void>;
  /** Merges it, if `head` is its present head. Returns whether it is merged. */
  merge(user: string, number: number, head: string): Promise<boolean>;
  /** A user lets the host merge it once the checks have succeeded. */
  schedule(user: string, number: number): Promise<void>;
  /** Adds a label that is created with it. */
  label(user: string, number: number, label: string): Promise<void>;
  /** Labels of the repository. */
  labels(): Promise<readonly string[]>;
  /** All checks of a commit that count, and how many were ever written. */
  checks(commit: string): Promise<{ readonly current: readonly Check[]; readonly written: number }>;
  /** The annotations of a check as the host shows them, or its link where the host has only that. */
  annotations(commit: string, check: string): Promise<readonly Annotation[] | string>;
  /** The text of a check; undefined where the host has no place for it. */
  text(commit: string, check: string): Promise<string | undefined>;
  /** Whose review is requested: users, and teams. */
  requested(number: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface Conformance extends TestOptions {
  /** Makes a repository. */
  readonly open: () => Promise<ForgeHost>;
  /** More pull requests than one page of the host has. */
  readonly pageSize: number;
}

export const NO_SIGNAL = new AbortController().signal;
export const EPOCH = '1970-01-01T00:00:00Z';
/** Hosts record times in seconds. */
export const SECOND = { timeout: 20_000, interval: 200 };

export type StartedHost = ForgeHost & { readonly pull: PullRequest; readonly head: string };

/** What the tests of a topic start from. */
export interface Suite {
  start(): Promise<ForgeHost>;
  /** A repository with a pull request from `proposed/shop/v1`. */
  startWithPull(): Promise<StartedHost>;
  readonly pageSize: number;
}

export function wanted() {
  return {
    ...{ head: 'proposed/shop/v1', base: 'main' },
    ...{ title: 'shop v1', body: 'A *proposal*:\n\n- ünï ✓ <!-- sluice -->\n' },
  };
}

/** Code and message of a rejection with a SluiceError, which contains none of these secrets. */
export async function failure(call: Promise<unknown>, secrets: readonly string[] = []): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isSluiceError(error)) throw error ?? new Error('it was expected to fail');
  const message = `${error.code}: ${error.message}`;
  for (const secret of secrets) expect(message).not.toContain(secret);
  return message;
}

export function byName(checks: readonly Check[]): readonly Check[] {
  return [...checks].sort((a, b) => (a.name < b.name ? -1 : 1));
}
