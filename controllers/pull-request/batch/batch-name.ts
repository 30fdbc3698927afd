import { digest } from '../../../src/foundation/text/canonical-json.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';

/** Branches of pull requests that several proposals share. */
const BATCH_BRANCHES = 'sluice/batch/';
const SUFFIX = ':batches';

/** True for the branch of a pull request that several proposals can share. */
export function isBatchBranch(branch: string): boolean {
  return branch.startsWith(BATCH_BRANCHES);
}

/** What the branches of a repository begin with. Others can be registered for other directories of the same Git repository. */
export function batchPrefix(repositoryId: string): string {
  return `${BATCH_BRANCHES}${digest(repositoryId).replace(/^.*:/, '').slice(0, 12)}-`;
}

/** The branch of the batch that a proposal founded: two processes choose the same one. */
export function batchBranch(repositoryId: string, founder: string): string {
  return `${batchPrefix(repositoryId)}${founder}`;
}

/** The key of the batches of a repository in the work queue: no object has such a name. */
export function batchesKey({ namespace, name }: ObjectKey): ObjectKey {
  return { ...(namespace === undefined ? {} : { namespace }), name: `${name}${SUFFIX}` };
}

export function isBatchesKey({ name }: ObjectKey): boolean {
  return name.endsWith(SUFFIX);
}

/** The inverse of `batchesKey`. */
export function repositoryOfBatches({ namespace, name }: ObjectKey): ObjectKey {
  return { ...(namespace === undefined ? {} : { namespace }), name: name.slice(0, -SUFFIX.length) };
}
