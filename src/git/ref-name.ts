import { SluiceError } from '../foundation/sluice-error.ts';

const MAX_REF_BYTES = 1024;
const MAX_SEGMENT_BYTES = 250;

/** Returns why a full ref name is invalid (by the rules of `git check-ref-format`, below `refs/`), or undefined. */
function refNameProblem(name: string): string | undefined {
  if (!name.startsWith('refs/')) return 'it does not start with "refs/"';
  if (Buffer.byteLength(name) > MAX_REF_BYTES) return `it is longer than ${MAX_REF_BYTES} bytes`;
  if (!name.isWellFormed()) return 'it is not valid Unicode';
  if (/[\x00-\x20\x7f~^:?*[\\]/.test(name)) return 'it contains a space, a control character or one of ~ ^ : ? * [ \\';
  if (name.includes('..') || name.includes('@{')) return 'it contains ".." or "@{"';
  const segments = name.split('/');
  if (name.endsWith('.')) return 'it ends with a dot';
  for (const segment of segments) {
    if (segment === '') return 'it has an empty part';
    if (segment.startsWith('.')) return 'a part starts with a dot';
    if (segment.endsWith('.lock')) return 'a part ends with ".lock"';
    // A file system takes 255 bytes, and Git appends ".lock".
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) return `a part is longer than ${MAX_SEGMENT_BYTES} bytes`;
  }
  return undefined;
}

export function isRefName(name: string): boolean {
  return refNameProblem(name) === undefined;
}

/** Throws InvalidInput, with the reason, for a name that Git does not accept as a ref. */
export function checkRefName(name: string): string {
  const problem = refNameProblem(name);
  if (problem === undefined) return name;
  throw new SluiceError('InvalidInput', `ref name ${JSON.stringify(name.slice(0, 200))} is refused: ${problem}`);
}

/** Throws InvalidInput for a prefix that no ref name can start with or that could leave the refs folder. */
export function checkRefPrefix(prefix: string): string {
  if (!prefix.startsWith('refs/') || prefix.includes('..') || /[\x00-\x20\x7f\\]|\/\/|\/\./.test(prefix))
    throw new SluiceError('InvalidInput', `${JSON.stringify(prefix.slice(0, 200))} is not the start of a ref name`);
  return prefix;
}
