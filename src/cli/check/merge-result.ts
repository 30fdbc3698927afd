import { isUtf8 } from 'node:buffer';
import type { Finding } from '../../function/lint/finding.ts';
import { isResourcePath } from '../../function/resource/resource-path.ts';
import { printable } from '../output/printable.ts';
import { CHANGES, changedEntries, foldersAbove, refusedEntries } from './changed-packages.ts';
import { readGit, runGit } from './run-git.ts';

const MAX_PACKAGE_BYTES = 64 * 1024 * 1024;
/** Also in Git, where links and submodules are entries of a tree. */
const REGULAR = /^100/;

/** The files of a package that can contain resources, wherever they were read from. */
export interface CheckedFiles {
  /** By path below the package folder, sorted. */
  readonly files: ReadonlyMap<string, string>;
  /** Skipped files, one line each. */
  readonly notes: readonly string[];
  /** Changed entries that are no files, and a Kptfile that is none. */
  readonly refused: readonly Finding[];
  /** Files are missing since both sides of a merge have changed them, so that the package cannot be rendered. */
  readonly isConflicting?: boolean;
}

/** What a base becomes by merging HEAD into it, in Git alone: nothing is checked out. */
export interface MergeResult {
  /** Folders of the outermost packages that differ from the base, sorted. */
  readonly packages: readonly string[];
  /** Files that both sides have changed. */
  readonly conflicts: readonly Finding[];
  read(folder: string): Promise<CheckedFiles>;
}

/** Merges HEAD into `base`. Throws InvalidInput where git refuses, for instance because the clone does not have a common commit of both. */
export async function mergeResult(root: string, base: string): Promise<MergeResult> {
  const merged = await runGit(
    root,
    ['merge-tree', '--write-tree', '--no-messages', '--name-only', '-z', base, 'HEAD'],
    {
      permitted: [1],
    },
  );
  const [tree = '', ...conflicting] = merged.split('\0').filter((part) => part !== '');
  const unmerged = new Set(conflicting);
  const entries = new Map(
    (await runGit(root, ['ls-tree', '-r', '-z', '--full-tree', tree]))
      .split('\0')
      .filter((line) => line !== '')
      .map((line) => {
        const [meta = '', path = ''] = [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)];
        const [mode = '', , oid = ''] = meta.split(' ');
        return [path, { mode, oid }] as const;
      }),
  );
  // Also if it is no file, which is an error then.
  const isPackage = (folder: string) => entries.has(folder === '.' ? 'Kptfile' : `${folder}/Kptfile`);
  const changed = changedEntries(await runGit(root, ['diff', ...CHANGES, base, tree, '--']));
  const packages = new Set<string>();
  for (const path of changed.keys()) {
    const folder = foldersAbove(path).find(isPackage);
    if (folder !== undefined) packages.add(folder);
  }
  const conflicts = conflicting.map((file): Finding => {
    const message = `both ${base} and this branch have changed it; merge ${base} into the branch`;
    return { file, line: 1, column: 1, severity: 'error', message, code: 'MergeConflict' };
  });
  return { packages: [...packages].sort(), conflicts, read };

  async function read(folder: string): Promise<CheckedFiles> {
    const place = folder === '.' ? '' : `${folder}/`;
    const notes: string[] = [];
    let isConflicting = false;
    const kptfile = entries.get(`${place}Kptfile`)?.mode ?? '';
    const refused = refusedEntries(folder, new Map(changed).set(`${place}Kptfile`, kptfile));
    const names = new Set(refused.map(({ file }) => file));
    const wanted: { readonly path: string; readonly oid: string }[] = [];
    for (const [path, { mode, oid }] of entries) {
      const below = path.slice(place.length);
      if (!path.startsWith(place) || !isResourcePath(below)) continue;
      // The tree has it with the marks of the conflict, which no version has.
      if (unmerged.has(path)) isConflicting = true;
      else if (REGULAR.test(mode)) wanted.push({ path: below, oid });
      else if (!names.has(below))
        notes.push(`${printable(below)}: not a regular file, passed over; links are not followed`);
    }
    const blobs = await readGit(
      root,
      wanted.map(({ oid }) => oid),
      MAX_PACKAGE_BYTES,
    );
    const files = new Map<string, string>();
    for (const [at, { path }] of wanted.entries()) {
      const data = blobs[at] ?? Buffer.alloc(0);
      if (isUtf8(data)) files.set(path, data.toString('utf8'));
      else notes.push(`${printable(path)}: not UTF-8, left as it is`);
    }
    return { files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))), notes, refused, isConflicting };
  }
}
