import { measurement } from '../foundation/measurement.ts';

export interface GitOperation {
  /** `fetch`, `list`, `push` on a remote, or a `transaction` on local refs. */
  readonly operation: string;
  readonly milliseconds: number;
}

/** How long Git takes. */
export const gitOperations = measurement<GitOperation>('sluice:git-operation');
