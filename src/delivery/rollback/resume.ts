import { packageKey } from '../selection/select-revisions.ts';
import type { PackageName } from '../status/target-deployment.ts';

/**
 * Annotation of a target that ends rollbacks by hand: `*`, or paths of packages, with or without their repository, separated by commas.
 * The rollback controller removes it.
 */
export const RESUME_ANNOTATION = 'sluice.dev/resume';

/** True if a value of the annotation names the package. */
export function isResumed(wanted: string, name: PackageName): boolean {
  const names = wanted.split(',').map((one) => one.trim());
  return names.includes('*') || names.includes(name.package) || names.includes(packageKey(name));
}
