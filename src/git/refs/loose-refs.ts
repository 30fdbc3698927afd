import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createPacer } from '../../foundation/concurrency/in-slices.ts';
import { errnoOf, isMissing, readFolderSync } from '../../foundation/files/file-system.ts';
import { DamageError } from '../errors.ts';
import type { Oid } from '../git-repository.ts';
import { isRefName } from '../ref-name.ts';

/** Within this time, two changes of a folder may get the same timestamp from a coarse file system, and so look like one. */
const COARSE_CLOCK_MS = 2_500;
/**
 * Milliseconds after which a folder is read again even if it looks unchanged: a process may have modified a file in
 * place.
 */
const MAX_SNAPSHOT_AGE_MS = 60_000;

/** Content of a folder when it was read. */
interface Snapshot {
  /** Inode and times: every ref that is created, deleted or replaced by a new file changes them. */
  readonly stamp: string;
  /** Time at which the stamp was first seen, and time at which the folder was read. */
  readonly seenAt: number;
  readonly readAt: number;
  /** By full name; undefined for a symbolic one. */
  readonly refs: ReadonlyMap<string, Oid | undefined>;
}

interface Folder {
  snapshot: Snapshot | undefined;
  folders: Map<string, Folder>;
}

/**
 * Reads refs that are stored in separate files. There are many tiny files, so that reading them synchronously takes a quarter of the
 * time. They are listed about every second and seldom differ, so the content of a folder is cached, and only folders that changed are
 * read again: Git updates a ref by replacing its file.
 */
export class LooseRefs {
  readonly #gitDir: string;
  readonly #now: () => number;
  readonly #root: Folder = { snapshot: undefined, folders: new Map() };

  /** `now` gives milliseconds that never go back. */
  constructor(gitDir: string, now: () => number = () => performance.now()) {
    this.#gitDir = gitDir;
    this.#now = now;
  }

  /** Adds the refs with a prefix, which begins with a folder (undefined for a symbolic one). */
  async addBelow(prefix: string, found: Map<string, Oid | undefined>): Promise<void> {
    const top = prefix.slice(0, prefix.lastIndexOf('/'));
    const waiting: [path: string, folder: Folder][] = [[top, this.#folderAt(top)]];
    const pause = createPacer();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [path, folder] = next;
      const stamp = stampOf(join(this.#gitDir, path));
      const known = folder.snapshot;
      const refs =
        known !== undefined && this.#isUnchanged(known, stamp)
          ? known.refs
          : await this.#read(path, folder, stamp, pause);
      for (const [name, oid] of refs) if (name.startsWith(prefix)) found.set(name, oid);
      for (const [name, below] of folder.folders) {
        const place = `${path}/${name}`;
        if (`${place}/`.startsWith(prefix) || prefix.startsWith(`${place}/`)) waiting.push([place, below]);
      }
      const turn = pause();
      if (turn !== undefined) await turn;
    }
  }

  /** The value of one ref as it is now; undefined if there is no file (or a folder in its place). */
  read(name: string): Oid | 'symbolic' | undefined {
    let text: string;
    try {
      text = readFileSync(join(this.#gitDir, name), 'latin1');
    } catch (error) {
      if (isMissing(error) || errnoOf(error) === 'EISDIR') return undefined;
      throw error;
    }
    if (text.startsWith('ref:')) return 'symbolic';
    const oid = /^([0-9a-f]{40})\s*$/.exec(text)?.[1];
    if (oid === undefined)
      throw new DamageError(`${name} is damaged: its file contains no object id. Restore or remove the file`);
    return oid;
  }

  #folderAt(path: string): Folder {
    let folder = this.#root;
    for (const segment of path.split('/')) folder = below(folder, segment);
    return folder;
  }

  /** True if the content of the folder is certainly unchanged since it was read. */
  #isUnchanged({ stamp, seenAt, readAt }: Snapshot, now: string): boolean {
    return stamp === now && readAt - seenAt > COARSE_CLOCK_MS && this.#now() - readAt < MAX_SNAPSHOT_AGE_MS;
  }

  async #read(
    path: string,
    folder: Folder,
    stamp: string,
    pause: () => Promise<void> | undefined,
  ): Promise<Snapshot['refs']> {
    const readAt = this.#now();
    const seenAt = folder.snapshot?.stamp === stamp ? folder.snapshot.seenAt : readAt;
    const refs = new Map<string, Oid | undefined>();
    const folders = new Map<string, Folder>();
    for (const entry of readFolderSync(join(this.#gitDir, path))) {
      const name = `${path}/${entry.name}`;
      if (entry.isDirectory()) folders.set(entry.name, below(folder, entry.name));
      else if (isRefName(name)) {
        const value = this.read(name);
        // A file that vanished since was deleted or packed. What was packed is in packed-refs, which is read later.
        if (value !== undefined) refs.set(name, value === 'symbolic' ? undefined : value);
      }
      const turn = pause();
      if (turn !== undefined) await turn;
    }
    folder.snapshot = { stamp, seenAt, readAt, refs };
    folder.folders = folders;
    return refs;
  }
}

function below(folder: Folder, name: string): Folder {
  const known = folder.folders.get(name);
  if (known !== undefined) return known;
  const added = { snapshot: undefined, folders: new Map() };
  folder.folders.set(name, added);
  return added;
}

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 'gone' : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs}`;
}
