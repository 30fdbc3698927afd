import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../../git/errors.ts';
import type { PackageContent } from './content.ts';
import { UNKNOWN_INPUTS } from './inputs.ts';

/**
 * Why content cannot be read as its writer pushed it: its folder is missing, it is beyond all limits, or its trees are malformed. It is a problem of
 * the revision, which any user who may push can cause. Undefined for all other errors, among them damage of the repository, which an operator
 * repairs.
 */
export function unreadableReason(error: unknown): string | undefined {
  if (error instanceof DamageError) return undefined;
  const isOfContent = (['NotFound', 'LimitExceeded', 'Corrupt'] as const).some((code) => isSluiceError(error, code));
  return isOfContent && error instanceof Error ? `no file of the package can be read: ${error.message}` : undefined;
}

/** Stands for content that cannot be read. It equals no other content, so that no decision on one commit counts for another. */
export function unreadableContent(commit: string): PackageContent {
  return {
    ...UNKNOWN_INPUTS,
    content: `unknown:${commit}`,
    tree: '',
    files: new Map(),
    skipped: [],
    objects: () => [],
  };
}
