import { type FieldCause, invalidValue } from '../object/invalid-object.ts';
import { sameValue } from '../object/same-value.ts';

/**
 * Returns causes for the fields that were set in `old` and have another value in `next`. Paths are dotted and do not
 * enter lists. `secret` omits the values from the messages.
 */
export function immutableCauses(paths: readonly string[], old: unknown, next: unknown, secret: boolean): FieldCause[] {
  return paths.flatMap((path) => {
    const steps = path.split('.');
    const before = valueAt(old, steps);
    const after = valueAt(next, steps);
    if (before === undefined || sameValue(before, after)) return [];
    return [invalidValue(steps, secret ? '(not shown)' : after, immutableMessage(path))];
  });
}

/** `git.repo is immutable`, for the field `spec.git.repo`. */
export function immutableMessage(path: string): string {
  return `${path.replace(/^spec\./, '')} is immutable`;
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  let inner = value;
  for (const step of steps) {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, step)) return undefined;
    inner = (inner as Record<string, unknown>)[step];
  }
  return inner;
}
