import { digest } from '../../../src/foundation/text/canonical-json.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';

/** Branches of pull requests that several proposals share. */
const BATCH_BRANCHES = 'sluice/batch/';
export const BATCH_REFS = `refs/heads/${BATCH_BRANCHES}`;
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

/** True for the name of a branch that a proposal of a repository can have founded. */
export function isNameOfBatch(repositoryId: string, branch: string): boolean {
  const prefix = batchPrefix(repositoryId);
  return branch.startsWith(prefix) && /^[0-9a-f]{16}$/.test(branch.slice(prefix.length));
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
