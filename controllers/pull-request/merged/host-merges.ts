import { measurement } from '../../../src/foundation/time/measurement.ts';

/** What became of a package that a Git host merged. */
export interface HostMerge {
  /** Which pull request brought it: one of a proposal, or one that a user opened. */
  readonly origin: 'proposal' | 'user';
  readonly result: 'published' | 'out_of_band' | 'not_published';
}

/** The packages that pull requests brought to the main branch. */
export const hostMerges = measurement<HostMerge>('sluice:host-merge');
