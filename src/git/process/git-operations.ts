import { measurement } from '../../foundation/time/measurement.ts';

export interface GitOperation {
  /** `fetch`, `list`, `push` on a remote, or a `transaction` on local refs. */
  readonly operation: string;
  readonly milliseconds: number;
}

export interface GitDisk {
  readonly repository: string;
  /** Undefined for one that is not open any more. */
  readonly bytes: number | undefined;
}

/** Disk usage of the objects of repositories. */
export const gitDisk = measurement<GitDisk>('sluice:git-disk');

/** Duration of Git operations. */
export const gitOperations = measurement<GitOperation>('sluice:git-operation');
