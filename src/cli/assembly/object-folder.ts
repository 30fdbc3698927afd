import type { Dirent } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, timestamp } from '../../foundation/clock.ts';
import { Mutex } from '../../foundation/mutex.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { EventLog } from '../../resource/event-log.ts';
import type { Kind } from '../../resource/kind.ts';
import { type KubernetesObject, keyText, type ObjectKey, type Stored } from '../../resource/object.ts';
import { type FileProblem, FileStorage } from './file-storage.ts';
import { keyOfFile, kindFolder, TEMPORARY_PREFIX } from './object-file.ts';
import { ProcessLock } from './process-lock.ts';

export interface ObjectFolderOptions {
  readonly root: string;
  readonly kinds: readonly Kind[];
  readonly clock: Clock;
  readonly log: EventLog;
}

const WRITE_PATIENCE = 10_000;

/** The registered objects of a data folder: one storage for each kind, one file for each object. */
export class ObjectFolder {
  readonly #options: ObjectFolderOptions;
  readonly #storages: readonly FileStorage[];
  readonly #mutex = new Mutex();
  #strays: FileProblem[] = [];

  private constructor(options: ObjectFolderOptions) {
    this.#options = options;
    const exclusive = <Result>(section: () => Promise<Result>) => this.#exclusive(section);
    this.#storages = options.kinds.map((kind) => new FileStorage(kind, { ...options, exclusive }));
  }

  /** Opens the folder, which may be missing or empty, and reads all files. */
  static async open(options: ObjectFolderOptions): Promise<ObjectFolder> {
    const folder = new ObjectFolder(options);
    await folder.refresh();
    return folder;
  }

  storages(): readonly FileStorage[] {
    return this.#storages;
  }

  /** All objects of a kind as they are now. */
  objects<T extends KubernetesObject>(kind: Kind<T>): Stored<T>[] {
    const storage = this.#storages.find((candidate) => candidate.kind === (kind as unknown as Kind));
    if (storage === undefined) throw new SluiceError('Internal', `the objects folder does not keep ${kind.plural}`);
    // Found by the identity of the kind.
    return storage.objects() as unknown as Stored<T>[];
  }

  /** Files that cannot be used now. */
  problems(): FileProblem[] {
    return [...this.#strays, ...this.#storages.flatMap((storage) => storage.problems())];
  }

  /** Takes in what changed in the files since the last look. */
  refresh(): Promise<void> {
    return this.#mutex.run(async () => {
      this.#strays = [];
      for (const storage of this.#storages) {
        const found = await this.#keysOnDisk(storage.kind);
        const keys = new Map([...storage.keys(), ...found].map((key) => [keyText(key), key]));
        for (const key of keys.values()) await storage.reload(key);
      }
    });
  }

  /** Removes what a killed process left half written. */
  removeLeftovers(): Promise<void> {
    return this.#exclusive(async () => {
      const entries = await list(this.#options.root, true);
      for (const entry of entries) {
        if (entry.isFile() && entry.name.startsWith(TEMPORARY_PREFIX)) {
          await rm(join(entry.parentPath, entry.name), { force: true });
        }
      }
    });
  }

  /** Neither another task nor another process is inside at the same time. */
  #exclusive<Result>(section: () => Promise<Result>): Promise<Result> {
    const { root, clock } = this.#options;
    return this.#mutex.run(async () => {
      await mkdir(root, { recursive: true, mode: 0o700 });
      const since = timestamp(clock.now());
      const lock = await ProcessLock.acquire(join(root, '.lock'), { since, patience: WRITE_PATIENCE });
      try {
        return await section();
      } finally {
        await lock.release();
      }
    });
  }

  async #keysOnDisk(kind: Kind): Promise<ObjectKey[]> {
    const folder = join(this.#options.root, kindFolder(kind));
    const files: string[] = [];
    for (const entry of await list(folder)) {
      if (!kind.namespaced) files.push(join(folder, entry.name));
      else if (entry.isDirectory()) {
        const inner = join(folder, entry.name);
        for (const file of await list(inner)) files.push(join(inner, file.name));
      }
    }
    const keys: ObjectKey[] = [];
    for (const file of files) {
      const key = keyOfFile(kind, file);
      if (key === undefined) continue;
      if (isPlainKey(key)) keys.push(key);
      else
        this.#strays.push({ path: file, kind, message: `${file}: the name of the file cannot be that of an object` });
    }
    return keys;
  }
}

/** Other names are no objects: a storage could not have written them. */
function isPlainKey({ namespace, name }: ObjectKey): boolean {
  return [namespace ?? 'x', name].every((part) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(part));
}

async function list(folder: string, recursive = false): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true, recursive });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
