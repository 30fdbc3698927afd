import { isUtf8 } from 'node:buffer';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { checkPath } from '../../../git/objects/paths.ts';
import { invalidObject, invalidValue } from '../../../resource/object/invalid-object.ts';
import { MAX_BYTES, MAX_FILES, type PackageContent } from '../../model/content/content.ts';

/** The files of a package that a map of strings can hold, and the paths of those that it cannot. */
export function textsOf(content: PackageContent): { texts: Record<string, string>; binary: string[] } {
  const texts: [string, string][] = [];
  const binary: string[] = [];
  for (const [path, data] of content.files) {
    // No reader of JSON can be trusted to keep a field of that name.
    if (isUtf8(data) && path !== '__proto__') texts.push([path, data.toString('utf8')]);
    else binary.push(path);
  }
  return { texts: Object.fromEntries(texts), binary };
}

/**
 * The edits that make the text files of a package exactly those given; binary files stay. Throws InvalidInput, with every path
 * that is refused, and LimitExceeded for a package that could not be read again.
 */
export function replaceTexts(
  name: string,
  content: PackageContent,
  texts: ReadonlyMap<string, string>,
): Map<string, Uint8Array | null> {
  if ((texts.get('Kptfile') ?? '').trim() === '') {
    throw refused(name, [
      invalidValue(
        ['spec', 'resources'],
        [...texts.keys()].slice(0, 10),
        'the Kptfile is missing or empty. An update replaces all files: send the map that was read with your changes in it, or patch single files',
      ),
    ]);
  }
  const { binary } = textsOf(content);
  const untouchable = new Map([
    ...binary.map((path): [string, string] => [
      path,
      'is binary or cannot be named in a map, and can be changed through Git only',
    ]),
    ...content.skipped.map((text): [string, string] => [
      text.slice(0, text.lastIndexOf(' (')),
      'is no regular file, and can be changed through Git only',
    ]),
  ]);
  const problems = [...texts].flatMap(([path, text]) => {
    const problem = untouchable.get(path) ?? pathProblem(path) ?? textProblem(text);
    return problem === undefined ? [] : invalidValue(['spec', 'resources', shown(path)], shown(path), problem);
  });
  if (problems.length > 0) throw refused(name, problems.slice(0, 20));
  checkSize(name, content, texts, binary);
  const edits = new Map<string, Uint8Array | null>();
  for (const path of content.files.keys()) if (!texts.has(path) && !untouchable.has(path)) edits.set(path, null);
  for (const [path, text] of texts) edits.set(path, Buffer.from(text));
  return edits;
}

function checkSize(
  name: string,
  content: PackageContent,
  texts: ReadonlyMap<string, string>,
  binary: readonly string[],
): void {
  let bytes = 0;
  for (const text of texts.values()) bytes += Buffer.byteLength(text);
  for (const path of binary) bytes += content.files.get(path)?.length ?? 0;
  const files = texts.size + binary.length;
  if (bytes <= MAX_BYTES && files <= MAX_FILES) return;
  throw new SluiceError(
    'LimitExceeded',
    `${name} would have ${files} files with ${bytes} bytes; a package has at most ${MAX_FILES} files and ${MAX_BYTES} bytes`,
  );
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

function refused(name: string, causes: Parameters<typeof invalidObject>[1]): SluiceError {
  return invalidObject(`PackageRevisionResources ${JSON.stringify(name)}`, causes);
}
