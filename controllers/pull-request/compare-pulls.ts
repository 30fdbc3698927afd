import { isDeepStrictEqual } from 'node:util';
import type { PullRequest } from '../../src/forge/forge.ts';

/** True if of two pull requests of one branch the first one counts: an open one, else the later one. */
export function isLater(known: PullRequest, other: PullRequest): boolean {
  if (known.number === other.number) return false;
  if ((known.state === 'open') !== (other.state === 'open')) return known.state === 'open';
  return known.number > other.number;
}

/**
 * Whether nothing has changed. Lists, single reads and queries of one host differ in what they return besides: whether there are comments, and
 * the names of users that do not exist any more.
 */
export function isSame(known: PullRequest, read: PullRequest): boolean {
  const { hasComments = known.hasComments ?? false } = read;
  return hasComments === (known.hasComments ?? false) && isDeepStrictEqual(comparable(known), comparable(read));
}

function comparable({ hasComments: _, author: __, labels, merged, ...pull }: PullRequest) {
  return { ...pull, labels: new Set(labels), merged: merged?.commit };
}
