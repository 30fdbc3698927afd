import type { Oid } from '../../git/git-repository.ts';

/** One line of what a `pre-receive` hook reads. */
export interface PushedRef {
  readonly ref: string;
  readonly old: Oid;
  readonly new: Oid;
}
