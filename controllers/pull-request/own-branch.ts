import { isBatchBranch } from './batch/batch-name.ts';

/** Prefix of the branches of proposals. */
const PROPOSED = 'proposed/';

/** True for the branches that Sluice opens pull requests for. */
export function isOwnBranch(branch: string): boolean {
  return branch.startsWith(PROPOSED) || isBatchBranch(branch);
}
