import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Kptfile } from '../../../kptfile-schema/index.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { CommitInfo } from '../package-revision.ts';
import type { RevisionRecord } from '../record.ts';

/** A Kptfile as read, or why it cannot be. */
export type KptfileFact =
  | { readonly kptfile: Kptfile; readonly problem?: undefined }
  | { readonly kptfile?: undefined; readonly problem: string };

/** A package found on the main branch. */
export interface FolderFact {
  readonly path: string;
  readonly tree: Oid;
  readonly kptfileBlob: Oid;
}

/**
 * What was read from Git objects. Objects never change, so an entry is never stale; a missing one is only slower. The file can be
 * deleted at any time, and a damaged one is worth no more than none.
 */
export class FactCache {
  /** By `<commit>:<package folder>`. */
  readonly commits = new Map<string, CommitInfo>();
  /** By blob. */
  readonly kptfiles = new Map<Oid, KptfileFact>();
  /** By record commit; null for one that cannot be read. */
  readonly records = new Map<Oid, RevisionRecord | null>();
  /** By tree of a package folder on the main branch: the Kptfile in it. */
  readonly folders = new Map<Oid, Oid>();

  /** Number of entries. */
  get size(): number {
    return this.commits.size + this.kptfiles.size + this.records.size + this.folders.size;
  }

  /** Drops everything but what another cache holds. */
  keepOnly(other: FactCache): void {
    refill(this.commits, other.commits);
    refill(this.kptfiles, other.kptfiles);
    refill(this.records, other.records);
    refill(this.folders, other.folders);
  }
}

function refill<Value>(map: Map<string, Value>, entries: ReadonlyMap<string, Value>): void {
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

/** Changes with the meaning of an entry; files of another version are not read. */
const VERSION = 'sluice-index 1';

type Line = ['c', string, CommitInfo] | ['k', Oid, KptfileFact] | ['r', Oid, RevisionRecord | null] | ['f', Oid, Oid];

/** Reads a cache file; an absent or damaged one gives an empty cache and the reason. */
export async function loadFactCache(file: string): Promise<{ cache: FactCache; note: string | undefined }> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return { cache: new FactCache(), note: absent ? undefined : `index cache not readable, rebuilt: ${String(error)}` };
  }
  const [version, sum, ...lines] = text.split('\n');
  if (version !== VERSION || sum !== checksum(lines)) {
    return { cache: new FactCache(), note: 'index cache of another version or damaged, rebuilt' };
  }
  const cache = new FactCache();
  for (const line of lines) if (line !== '') put(cache, JSON.parse(line) as Line);
  return { cache, note: undefined };
}

/** A damaged cache must not show revisions that are not there, so the whole is checked before a line of it counts. */
function checksum(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

function put(cache: FactCache, line: Line): void {
  switch (line[0]) {
    case 'c':
      cache.commits.set(line[1], line[2]);
      break;
    case 'k':
      cache.kptfiles.set(line[1], line[2]);
      break;
    case 'r':
      cache.records.set(line[1], line[2]);
      break;
    case 'f':
      cache.folders.set(line[1], line[2]);
      break;
  }
}

/** Writes the cache beside and renames it into place, so that a reader never sees half of it. */
export async function saveFactCache(file: string, cache: FactCache): Promise<void> {
  const lines: string[] = [];
  for (const [key, value] of cache.commits) lines.push(JSON.stringify(['c', key, value] satisfies Line));
  for (const [key, value] of cache.kptfiles) lines.push(JSON.stringify(['k', key, value] satisfies Line));
  for (const [key, value] of cache.records) lines.push(JSON.stringify(['r', key, value] satisfies Line));
  for (const [key, value] of cache.folders) lines.push(JSON.stringify(['f', key, value] satisfies Line));
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile([VERSION, checksum(lines), ...lines].join('\n'));
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
