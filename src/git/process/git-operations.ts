import { measurement, timed } from '../../foundation/time/measurement.ts';
import { type SpanOrigin, traced } from '../../foundation/tracing/traced.ts';

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

const LOCAL: SpanOrigin = {};
const REMOTE: SpanOrigin = { kind: 'client' };

/** Duration of Git operations. */
export const gitOperations = measurement<GitOperation>('sluice:git-operation');

/** Runs an operation, measures it and records it as a span, which does not name the remote: its address may contain credentials. */
export function gitOperation<Result>(operation: string, work: () => Promise<Result>): Promise<Result> {
  return traced(
    `git.${operation}`,
    {},
    () => timed(gitOperations, operation, work),
    operation === 'transaction' ? LOCAL : REMOTE,
  );
}
