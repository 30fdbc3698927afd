import { measurement } from '../../../src/foundation/time/measurement.ts';

/** What became of a package that a Git host merged. */
export interface HostMerge {
  readonly result: 'published' | 'out_of_band' | 'not_published';
}

/** The merges that ended, by package, those of proposals and of pull requests of users. */
export const hostMerges = measurement<HostMerge>('sluice:host-merge');
