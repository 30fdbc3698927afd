import type { Forge } from '../../../src/forge/forge.ts';
import { isSluiceError, unlessMissing } from '../../../src/foundation/sluice-error.ts';
import type { PullRequests } from '../pull-requests.ts';

/**
 * Whether a pull request of a branch was deleted, after the host has not found something. A host responds the same while the token cannot read the
 * repository: then nothing must be forgotten, since the pull request may end meanwhile, nor while the host fails to answer that. Takes over what the host
 * has of the branch. Without a number it is about the one that is known: where none is, there is nothing that could end.
 */
export async function isDeletedOnHost(
  pulls: Pick<PullRequests, 'base' | 'forge' | 'note' | 'ofBranch'>,
  { branch, number: given }: { readonly branch: string; readonly number?: number },
  signal: AbortSignal,
): Promise<boolean> {
  const { forge, base } = pulls;
  try {
    const number = given ?? (await pulls.ofBranch(branch, signal))?.number;
    if (number === undefined) return true;
    if (!(await isGone(forge, number, signal))) return false;
    const other = await forge.find(branch, base, signal);
    if (other !== undefined) pulls.note(other);
    return other?.number !== number;
  } catch (error) {
    // A rate limit has a pause of its own.
    if (!isSluiceError(error) || error.code === 'TooManyRequests') throw error;
    return false;
  }
}

/** Whether the host does not have a pull request, and those of its repository can be read. */
export async function isGone(
  forge: Pick<Forge, 'get' | 'listUpdated'>,
  number: number,
  signal: AbortSignal,
): Promise<boolean> {
  if ((await unlessMissing(forge.get(number, signal))) !== undefined) return false;
  return (await unlessMissing(forge.listUpdated('1970-01-01T00:00:00Z', 1, signal))) !== undefined;
}
