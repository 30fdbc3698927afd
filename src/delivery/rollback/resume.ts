import { packageKey } from '../selection/select-revisions.ts';
import type { PackageName } from '../status/target-deployment.ts';

/**
 * Annotation of a target that ends rollbacks by hand: `<repository>/<package>@v<failed revision>`, separated by commas. It stays: a revision
 * that it names is not rolled back again, and a target needs no write by a controller.
 */
export const RESUME_ANNOTATION = 'sluice.dev/resume';

interface FailedRevision extends PackageName {
  readonly from: number;
}

/** True if a value of the annotation names the failed revision. */
export function isResumed(value: string | undefined, failed: FailedRevision): boolean {
  return namesIn(value).includes(nameOf(failed));
}

/** The value with further revisions, without earlier ones of the same packages. */
export function withResumed(value: string | undefined, added: readonly FailedRevision[]): string {
  const replaced = added.map((one) => `${packageKey(one)}@`);
  const kept = namesIn(value).filter((name) => !replaced.some((start) => name.startsWith(start)));
  return [...kept, ...added.map(nameOf)].join(',');
}

function namesIn(value = ''): string[] {
  return value.split(',').flatMap((one) => (one.trim() === '' ? [] : one.trim()));
}

function nameOf(failed: FailedRevision): string {
  return `${packageKey(failed)}@v${failed.from}`;
}
