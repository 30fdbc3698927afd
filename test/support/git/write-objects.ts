import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import type { FileMode, ObjectType, Oid } from '../../../src/git/git-repository.ts';
import { encodeCommit } from '../../../src/git/objects/commit-codec.ts';
import { hashOf, objectHeader } from '../../../src/git/objects/object-id.ts';
import { encodeName, encodeTree, rawEntry } from '../../../src/git/objects/tree-codec.ts';
import { initBare } from './git-cli.ts';

/*
 * What tests write into repositories before the part that they test, as `git` would write it: a process takes longer than all of these files
 * together, the more so the more memory the process of the tests has.
 */

/** Who commits, where a test does not say it. */
export const PERSON = { name: 'Test', email: 'test@example.com', time: 1_700_000_000_000 };

/** Creates a bare repository with one commit of these files, by name, on `main`. Returns its path. */
export function bareWithCommit(gitDir: string, files: Readonly<Record<string, string>> = {}, person = PERSON): string {
  initBare(gitDir);
  const entries = Object.entries(files).map(([name, text]) => [name, writeObject(gitDir, 'blob', text)] as const);
  const tree = writeTree(gitDir, new Map(entries.map(([name, oid]) => [name, { mode: '100644', oid }])));
  writeRef(gitDir, 'refs/heads/main', writeCommit(gitDir, { tree, parents: [], message: 'begin\n' }, person));
  return gitDir;
}

/** Writes an object as a loose file. Returns its id. */
export function writeObject(gitDir: string, type: ObjectType, content: string | Buffer): Oid {
  const data = Buffer.from(content);
  const stored = Buffer.concat([objectHeader(type, data.length), data]);
  const oid = hashOf(stored);
  const file = join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2));
  if (!existsSync(file)) replaceFile(file, deflateSync(stored, { level: 1 }));
  return oid;
}

/** The bytes of an entry in a tree, also of one that git would not write. */
export function storedEntry(mode: string, name: string, oid: Oid): Buffer {
  return Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')]);
}

/** Writes a tree of entries by name. Returns its id. */
export function writeTree(
  gitDir: string,
  entries: ReadonlyMap<string, { readonly mode: FileMode; readonly oid: Oid }>,
): Oid {
  const raw = Array.from(entries, ([name, { mode, oid }]) => rawEntry(mode, encodeName(name), oid));
  return writeObject(gitDir, 'tree', encodeTree(raw));
}

/** Writes a commit of a person, who is also the committer unless that is another one. Returns its id. */
export function writeCommit(
  gitDir: string,
  commit: { readonly tree: Oid; readonly parents: readonly Oid[]; readonly message: string },
  author = PERSON,
  committer = author,
): Oid {
  return writeObject(gitDir, 'commit', encodeCommit({ ...commit, author, committer }));
}

/** Creates or moves a ref without a look at its earlier value. */
export function writeRef(gitDir: string, ref: string, oid: Oid): void {
  replaceFile(join(gitDir, ref), `${oid}\n`);
}

/** A reader finds either all of it or what was there before. */
function replaceFile(file: string, content: string | Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
}
