import { unifiedDiff } from './unified-diff.ts';

/** What became of a file between two versions of a package. */
export interface FileChange {
  readonly path: string;
  readonly change: 'Added' | 'Removed' | 'Modified';
  /** True for a file that is not text. */
  readonly binary?: true;
  /** In the form that `git apply` reads. */
  readonly patch: string;
}

type Files = ReadonlyMap<string, Buffer>;

/** The paths at which two versions of a package differ, sorted. */
export function changedPaths(before: Files, after: Files): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.filter((path) => !same(before.get(path), after.get(path)));
}

/** Lets others have their turn while a long difference is searched. */
export async function fileChange(
  path: string,
  before: Buffer | undefined,
  after: Buffer | undefined,
): Promise<FileChange> {
  const change = before === undefined ? 'Added' : after === undefined ? 'Removed' : 'Modified';
  const isBinary = before?.includes(0) === true || after?.includes(0) === true;
  return { path, change, ...(isBinary ? { binary: true } : {}), patch: await fileDiff(path, before, after) };
}

function same(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before === undefined || after === undefined ? before === after : before.equals(after);
}

async function fileDiff(path: string, before: Buffer | undefined, after: Buffer | undefined): Promise<string> {
  const [left, right] = [quoted(`a/${path}`), quoted(`b/${path}`)];
  const lines = [`diff --git ${left} ${right}`];
  if (before === undefined) lines.push('new file mode 100644');
  if (after === undefined) lines.push('deleted file mode 100644');
  const header = `${lines.join('\n')}\n`;
  if (before?.includes(0) || after?.includes(0)) return `${header}Binary files ${left} and ${right} differ\n`;
  const [old, next] = [before?.toString('utf8') ?? '', after?.toString('utf8') ?? ''];
  if (old === next) return header;
  const names = { before: before === undefined ? undefined : left, after: after === undefined ? undefined : right };
  return `${header}${await unifiedDiff(old, next, names)}`;
}

/** A path as Git writes it in a patch: in quotes and with octal bytes if it has characters that could mislead. */
function quoted(path: string): string {
  if (/^[\x21\x23-\x5b\x5d-\x7e ]+$/.test(path)) return path;
  const bytes = [...Buffer.from(path)].map((byte) =>
    byte > 0x1f && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
      ? String.fromCharCode(byte)
      : `\\${byte.toString(8).padStart(3, '0')}`,
  );
  return `"${bytes.join('')}"`;
}
