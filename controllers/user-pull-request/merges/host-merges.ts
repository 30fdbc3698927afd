import { measurement } from '../../../src/foundation/time/measurement.ts';

/** What became of a package that a Git host merged. */
export interface HostMerge {
  readonly result: 'published' | 'out_of_band' | 'not_published';
}

/** The packages that pull requests of users brought to the main branch. */
export const hostMerges = measurement<HostMerge>('sluice:host-merge');
