import type { Difference } from './compare-revisions.ts';

/** What happens, or happened, to one Repository object of Porch. */
export type RepositoryAction =
  /** Sluice does not have it: `--yes` registers it. */
  | 'register'
  | 'registered'
  /** Sluice has the same one. */
  | 'present'
  /** Sluice has another one of this name. */
  | 'conflict'
  /** Sluice cannot work with it, or could not be made to. */
  | 'blocked';

export interface RepositoryReport {
  readonly namespace: string;
  readonly name: string;
  /** Without user and password, which old objects can contain. */
  readonly address: string;
  readonly action: RepositoryAction;
  readonly message?: string;
  readonly next?: string;
  /** The Secret with the credentials; its name only. */
  readonly secret?: { readonly name: string; readonly state: 'present' | 'missing' | 'copy' | 'copied' };
  /** Package revisions at Porch. */
  readonly porch?: number;
  /** Package revisions in Sluice; absent where the repository is not registered. */
  readonly sluice?: number;
  /** Package revisions that both show alike. */
  readonly alike?: number;
  /** Package revisions whose metadata lacks what Porch has, or lacked it. */
  readonly metadata?: readonly { readonly name: string; readonly copied: boolean; readonly what: string }[];
}

/** What does not stop a migration, and that an operator must know. */
export interface Note {
  readonly namespace: string;
  /** A repository, or the kind of the objects. */
  readonly subject: string;
  readonly reason: string;
  readonly message: string;
  /** Names of the objects. */
  readonly names: readonly string[];
  readonly next?: string;
}

export interface MigrationReport {
  readonly porch: string;
  readonly sluice: string;
  /** True if `--yes` was given. */
  readonly applied: boolean;
  readonly repositories: readonly RepositoryReport[];
  readonly differences: readonly Difference[];
  readonly notes: readonly Note[];
}

/** 0 if nothing differs and nothing is left that cannot be migrated. What a dry run would do is no difference. */
export function exitCodeOf({ repositories, differences }: MigrationReport): number {
  const isFailed = repositories.some(({ action }) => action === 'conflict' || action === 'blocked');
  return isFailed || differences.length > 0 ? 1 : 0;
}
