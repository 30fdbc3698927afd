import { joinPath } from '../path-rules.ts';
import { engineText, isWithin } from './engine-values.ts';
import { KUSTOMIZATION_NAMES } from './included-folders.ts';

/** A file in the syntax of `.gitignore`: Flux leaves out what it matches, in its folder and below. */
export const SOURCE_IGNORE = '.sourceignore';
/** Characters of a pattern in a message. */
const MAX_PATTERN_CHARACTERS = 60;
const WILDCARD = /[*?[\\]/;
const SUFFIX = /^\*([^*?[\\]+)$/;

/** What a GitRepository of Flux leaves out of its artifact, besides what the files `.sourceignore` of the branch match. */
export interface ArtifactFilter {
  /** `spec.ignore`, in the syntax of `.sourceignore`. */
  readonly ignore?: string;
  /** `spec.sparseCheckout`: the artifact has only what is in these folders. */
  readonly directories?: readonly string[];
}

/** The patterns of the file `.sourceignore` in a folder; null if it has none, undefined if it is not read yet. */
export type IgnorePatterns = (folder: string) => readonly string[] | null | undefined;

/** The patterns of a text that exclude files; those with `!` include files again. */
export function ignorePatterns(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#') && !line.startsWith('!'));
}

/**
 * Why an artifact of Flux may lack a folder, with the next step; undefined if it has the folder. An artifact without the folder is applied
 * with success, and its objects are pruned. Patterns are not evaluated: each that can match the folder, a folder above it, or a
 * kustomization counts. A pattern that matches another file in the folder makes Flux fail, since the kustomization lists that file.
 */
export function leftOutBy(
  { ignore = '', directories = [] }: ArtifactFilter,
  patternsIn: IgnorePatterns,
  folder: string,
): string | undefined {
  if (directories.length > 0 && !directories.some((one) => isWithin(folder, withoutSlashes(one))))
    return 'spec.sparseCheckout of its GitRepository does not name the folder or one above it, so that Flux does not read it; add it there';
  const own = ignorePatterns(ignore).find((pattern) => canMatch(pattern, '', folder));
  if (own !== undefined) return leftOut(own, 'spec.ignore of its GitRepository');
  let result: string | undefined;
  for (const place of foldersTo(folder)) {
    const file = joinPath(place, SOURCE_IGNORE);
    // Flux reads no files outside the folders of a sparse checkout.
    if (directories.length > 0 && !directories.some((one) => file.startsWith(withoutSlashes(one)))) continue;
    const patterns = patternsIn(place);
    if (patterns === undefined) result ??= `${file} in the branch is not read yet`;
    const found = patterns?.find((pattern) => canMatch(pattern, place, folder));
    if (found !== undefined) result ??= leftOut(found, `${file} in the branch`);
  }
  return result;
}

function leftOut(pattern: string, where: string): string {
  const text = engineText(pattern, MAX_PATTERN_CHARACTERS);
  return `Flux may leave the folder out: pattern "${text}" of ${engineText(where)} can match it; remove the pattern, or write one that begins with "/" and the name of another folder`;
}

/** False only for a pattern that certainly matches neither the folder, nor one above it, nor a kustomization. */
function canMatch(pattern: string, base: string, folder: string): boolean {
  const inside = base === '' ? folder : folder.slice(base.length + 1);
  const bare = pattern.replace(/ +$/, '').replace(/\/$/, '');
  const segments = bare.split('/').filter((one) => one !== '');
  if (bare.includes('/')) {
    // It begins at the folder of the file.
    const wild = segments.findIndex((one) => WILDCARD.test(one));
    const literal = (wild < 0 ? segments : segments.slice(0, wild)).join('/');
    return isWithin(inside, literal) || isWithin(literal, inside);
  }
  // It is about names of files and folders at any depth.
  const names = [...inside.split('/'), ...KUSTOMIZATION_NAMES].filter((one) => one !== '');
  if (!WILDCARD.test(bare)) return names.includes(bare);
  const suffix = SUFFIX.exec(bare)?.[1];
  return suffix === undefined || names.some((one) => one.endsWith(suffix));
}

/** The root and the folders from there to this one, which is the last. */
function foldersTo(folder: string): string[] {
  const segments = folder === '' ? [] : folder.split('/');
  return ['', ...segments.map((_, index) => segments.slice(0, index + 1).join('/'))];
}

function withoutSlashes(directory: string): string {
  return directory.replace(/^\.\//, '').replace(/\/$/, '');
}
