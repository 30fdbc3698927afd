/** Bytes of a Kptfile (of a string: UTF-16 units). One with 500 gates, 500 conditions and their messages fits; reading takes 20 ms. */
export const MAX_KPTFILE_BYTES = 256 * 1024;
/** Values and field names, those inside of others included: what reading and editing cost grows with them more than with bytes. */
export const MAX_VALUES = 10_000;
/** Entries of `info.readinessGates`. */
export const MAX_GATES = 500;
/** Entries of `status.conditions`. */
export const MAX_CONDITIONS = 500;

const LISTS = [
  { parent: 'info', field: 'readinessGates', what: 'readiness gates', max: MAX_GATES },
  { parent: 'status', field: 'conditions', what: 'conditions', max: MAX_CONDITIONS },
] as const;

export interface LongList {
  /** As in `status.conditions`. */
  readonly path: string;
  readonly message: string;
}

/** The first list that is longer than a Kptfile may have it. `lengthOf` counts its entries; undefined where there is none. */
export function findLongList(
  lengthOf: (parent: (typeof LISTS)[number]['parent'], field: (typeof LISTS)[number]['field']) => number | undefined,
): LongList | undefined {
  for (const { parent, field, what, max } of LISTS) {
    const length = lengthOf(parent, field) ?? 0;
    if (length <= max) continue;
    const path = `${parent}.${field}`;
    return {
      path,
      message: `${path} has ${length} ${what}; at most ${max} are allowed. Remove those that are not needed.`,
    };
  }
  return undefined;
}
