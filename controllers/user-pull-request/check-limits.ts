import type { WorkLimit } from '../../src/controller/work-queue.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';

export const MAX_CONCURRENT = 4;
/** In place of a number: the pull requests that were merged. */
export const MERGED = 'merged';

/**
 * Limits of the check of a pull request, `<repository>.<number>`, which renders what strangers wrote. Checks leave a worker to polls and merges, and
 * those of one repository or namespace leave some to others.
 */
export function checkLimits({ namespace, name }: ObjectKey): readonly WorkLimit[] {
  const [repository = '', number = MERGED] = name.split('.');
  if (number === MERGED) return [];
  return [
    { name: 'checks', most: MAX_CONCURRENT - 1 },
    { name: `checks in ${namespace}`, most: 2 },
    { name: `checks of ${namespace}/${repository}`, most: 1 },
  ];
}
