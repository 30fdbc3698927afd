import { isUtf8 } from 'node:buffer';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { checkPath } from '../../../git/objects/paths.ts';
import { invalidObject, invalidValue } from '../../../resource/object/invalid-object.ts';
import { type PackageContent, skippedPath } from '../../model/content/content.ts';
import { checkPackageSize, depthProblem } from '../../model/content/package-size.ts';

/** All files of a package in a request. */
export interface WholeFiles {
  readonly texts: ReadonlyMap<string, string>;
  /** Undefined keeps the binary files as they are. */
  readonly binary: ReadonlyMap<string, Buffer> | undefined;
}

/** A path that cannot be a key of a map: some readers of JSON drop a field with this name. */
const UNNAMEABLE = '__proto__';

/** Sorts the files of a package: texts, binary files, and the paths of those that cannot be keys of a map. */
export function sortFiles({ files }: Pick<PackageContent, 'files'>): {
  readonly texts: Record<string, string>;
  readonly binary: ReadonlyMap<string, Buffer>;
  readonly unnameable: readonly string[];
} {
  const texts: [string, string][] = [];
  const binary = new Map<string, Buffer>();
  const unnameable: string[] = [];
  for (const [path, data] of files) {
    if (path === UNNAMEABLE) unnameable.push(path);
    else if (isUtf8(data)) texts.push([path, data.toString('utf8')]);
    else binary.set(path, data);
  }
  return { texts: Object.fromEntries(texts), binary, unnameable };
}

/**
 * Returns the edits that replace the files of a package by the given ones. Throws InvalidInput, with every path that is refused, and LimitExceeded
 * for a package that could not be read again.
 */
export function replaceFiles(
  name: string,
  content: PackageContent,
  { texts, binary: given }: WholeFiles,
): Map<string, Uint8Array | null> {
  if ((texts.get('Kptfile') ?? '').trim() === '') {
    throw refusedFiles(name, [
      invalidValue(
        ['spec', 'resources'],
        [...texts.keys()].slice(0, 10),
        'the Kptfile is missing or empty. An update replaces all files: send the map that was read with your changes in it, or patch single files',
      ),
    ]);
  }
  const { binary: present, unnameable } = sortFiles(content);
  const binary = given ?? present;
  const kept = given === undefined ? [...present.keys()] : [];
  const untouchable = new Map([
    ...kept.map((path): [string, string] => [
      path,
      'is binary: to put a text in its place, send binaryResources without it',
    ]),
    ...unnameable.map((path): [string, string] => [
      path,
      'cannot be named in a map, and can be changed through Git only',
    ]),
    ...content.skipped.map((text): [string, string] => [
      skippedPath(text),
      'is no regular file, and can be changed through Git only',
    ]),
  ]);
  // A file that a push put deeper can be written back.
  const newPathProblem = (path: string) =>
    pathProblem(path) ?? (content.files.has(path) ? undefined : depthProblem(path));
  const problems = [...texts].flatMap(([path, text]) => {
    const problem = untouchable.get(path) ?? newPathProblem(path) ?? textProblem(text);
    return problem === undefined ? [] : invalidValue(['spec', 'resources', shown(path)], shown(path), problem);
  });
  for (const path of given?.keys() ?? []) {
    const twice = texts.has(path) ? 'is in resources as well' : undefined;
    const problem = twice ?? untouchable.get(path) ?? newPathProblem(path);
    if (problem !== undefined)
      problems.push(invalidValue(['spec', 'binaryResources', shown(path)], shown(path), problem));
  }
  if (problems.length > 0) throw refusedFiles(name, problems.slice(0, 20));
  checkPackageSize(name, new Map<string, string | Uint8Array>([...texts, ...binary]), [
    ...unnameable,
    ...content.skipped.map(skippedPath),
  ]);
  const edits = new Map<string, Uint8Array | null>();
  for (const path of content.files.keys())
    if (!texts.has(path) && !binary.has(path) && !untouchable.has(path)) edits.set(path, null);
  for (const [path, text] of texts) edits.set(path, Buffer.from(text));
  for (const [path, data] of given ?? []) edits.set(path, data);
  return edits;
}

function pathProblem(path: string): string | undefined {
  try {
    checkPath(path);
    return undefined;
  } catch (error) {
    if (error instanceof SluiceError) return error.message;
    throw error;
  }
}

function textProblem(text: string): string | undefined {
  return text.isWellFormed() ? undefined : 'the text is not valid Unicode';
}

function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}

/** The error of a request whose files are refused. */
export function refusedFiles(name: string, causes: Parameters<typeof invalidObject>[1]): SluiceError {
  return invalidObject(`PackageRevisionResources ${JSON.stringify(name)}`, causes);
}
