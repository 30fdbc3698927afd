import { mergePackage } from './merge-package.ts';
import type { Overwritten, OverwrittenField } from './overwritten.ts';
import type { PackageFiles } from './package-files.ts';

/** What a merge overwrote, and the versions that it merged. */
export interface OverwrittenBy {
  readonly overwritten: Overwritten;
  readonly local: PackageFiles;
  readonly original: PackageFiles;
}

/**
 * What the final content of a package does not have, of the local changes that a merge overwrote: functions and controllers may have
 * made the others again.
 */
export async function stillOverwritten(
  { overwritten, local, original }: OverwrittenBy,
  readFinal: () => Promise<PackageFiles>,
): Promise<Overwritten> {
  if (overwritten.total === 0) return overwritten;
  const after = mergePackage(local, original, await readFinal()).overwritten;
  if (after.total > after.fields.length) return overwritten;
  const keys = new Set(after.fields.map(keyOf));
  const fields = overwritten.fields.filter((one) => keys.has(keyOf(one)));
  return { fields, total: overwritten.total - overwritten.fields.length + fields.length };
}

function keyOf({ file, resource, field }: OverwrittenField): string {
  return JSON.stringify([file, resource, field]);
}
