import { mergePackage } from './merge-package.ts';
import { type Overwritten, type OverwrittenField, overwrittenTexts } from './overwritten.ts';
import type { PackageFiles } from './package-files.ts';

/** What a merge overwrote, and the versions that it merged. */
export interface OverwrittenBy {
  /** The side that the result has the values of. */
  readonly by: 'upstream' | 'the main branch';
  readonly overwritten: Overwritten;
  /** Which files both sides changed of which the result has one side, see `keptText`; undefined if there are none. */
  readonly kept?: string | undefined;
  readonly local: PackageFiles;
  readonly original: PackageFiles;
}

const MAX_TEXT_CHARACTERS = 4096;

/** The text by which the commit of a merge records what it overwrote; undefined if that is nothing. */
export function overwrittenText(by: OverwrittenBy['by'], overwritten: Overwritten): string | undefined {
  if (overwritten.total === 0) return undefined;
  return `by ${by}: ${overwrittenTexts(overwritten).join(', ')}`.slice(0, MAX_TEXT_CHARACTERS);
}

const MAX_SHOWN_FILES = 10;

/** The text about files that stay as they were changed locally; undefined if there are none. */
export function keptText(files: readonly string[]): string | undefined {
  if (files.length === 0) return undefined;
  const more = files.length > MAX_SHOWN_FILES ? ` and ${files.length - MAX_SHOWN_FILES} more` : '';
  return `changed upstream, and kept as they were changed locally: ${files.slice(0, MAX_SHOWN_FILES).join(', ')}${more}`;
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
