import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DamageError } from './errors.ts';
import { errnoOf, isMissing } from './file-system.ts';
import type { Oid, Ref } from './git-repository.ts';
import { PackedRefs } from './packed-refs.ts';
import { isRefName } from './ref-name.ts';

/**
 * Loose refs are tiny and many: read synchronously they take a quarter of the time. So long, in milliseconds, the event loop is held
 * up before others get their turn.
 */
const SLICE_MS = 4;

/**
 * Reads refs from Git's files: loose files first, then `packed-refs`, so that a ref that is packed in between is found in one of the
 * two. Each value is one the ref had during the call; a transaction of another process may be seen in part.
 */
export class RefFiles {
  readonly #gitDir: string;
  #packed: { readonly key: string; readonly refs: PackedRefs } | undefined;

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
  }

  /** Refs with one of the prefixes, all without any, sorted by name. */
  async list(prefixes: readonly string[]): Promise<Ref[]> {
    const wanted = prefixes.length === 0 ? ['refs/'] : withoutCovered(prefixes);
    const loose = new Map<string, Oid | undefined>();
    for (const prefix of wanted) await this.#readLooseBelow(prefix, loose);
    const packed = await this.packed();
    const stillPacked = wanted.flatMap((prefix) => packed.withPrefix(prefix).filter(({ name }) => !loose.has(name)));
    const changed = [...loose].flatMap(([name, oid]) => (oid === undefined ? [] : [{ name, oid }]));
    return mergeSorted(stillPacked, changed.sort(byName));
  }

  /** The refs below a folder (`refs/`) that have a loose file, in no order. */
  async listLoose(prefix: string): Promise<Ref[]> {
    const loose = new Map<string, Oid | undefined>();
    await this.#readLooseBelow(prefix, loose);
    return [...loose].flatMap(([name, oid]) => (oid === undefined ? [] : [{ name, oid }]));
  }

  /** What a ref points to; undefined if it does not exist or is symbolic. */
  async resolve(name: string): Promise<Oid | undefined> {
    const loose = this.readLoose(name);
    if (loose !== undefined) return loose === 'symbolic' ? undefined : loose;
    return (await this.packed()).get(name);
  }

  /** The loose value of a ref; undefined if there is no file (or a folder in its place). */
  readLoose(name: string): Oid | 'symbolic' | undefined {
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
      throw new DamageError(`${name} is damaged: its file holds no object id. Restore or remove the file`);
    return oid;
  }

  /** The packed refs, parsed again only when the file was replaced. */
  async packed(): Promise<PackedRefs> {
    const path = join(this.#gitDir, 'packed-refs');
    for (;;) {
      const key = await fileKey(path);
      if (key === undefined) return PackedRefs.EMPTY;
      if (this.#packed?.key === key) return this.#packed.refs;
      const refs = PackedRefs.parse(await readFile(path));
      // Read again if the file was replaced between the two calls.
      if ((await fileKey(path)) !== key) continue;
      this.#packed = { key, refs };
      return refs;
    }
  }

  /** Adds the loose refs with a prefix (undefined for a symbolic one). */
  async #readLooseBelow(prefix: string, found: Map<string, Oid | undefined>): Promise<void> {
    const folders = [prefix.slice(0, prefix.lastIndexOf('/'))];
    let sliceEnd = performance.now() + SLICE_MS;
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for (const entry of readFolder(join(this.#gitDir, folder))) {
        const name = `${folder}/${entry.name}`;
        if (entry.isDirectory()) {
          if (`${name}/`.startsWith(prefix) || prefix.startsWith(`${name}/`)) folders.push(name);
        } else if (name.startsWith(prefix) && isRefName(name)) {
          const value = this.readLoose(name);
          // A file that vanished since was deleted or packed. What was packed is in packed-refs, which is read later.
          if (value !== undefined) found.set(name, value === 'symbolic' ? undefined : value);
        }
        if (performance.now() < sliceEnd) continue;
        await setImmediate();
        sliceEnd = performance.now() + SLICE_MS;
      }
    }
  }
}

function readFolder(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function byName(a: Ref, b: Ref): number {
  return a.name < b.name ? -1 : 1;
}

function mergeSorted(many: readonly Ref[], few: readonly Ref[]): Ref[] {
  const merged: Ref[] = [];
  let next = 0;
  for (const ref of few) {
    for (let other = many[next]; other !== undefined && byName(other, ref) < 0; other = many[next]) {
      merged.push(other);
      next += 1;
    }
    merged.push(ref);
  }
  return merged.concat(many.slice(next));
}

/** Changes whenever the file is replaced; undefined if there is none. */
async function fileKey(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return `${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Prefixes without those that another one covers, so that no ref is listed twice. */
function withoutCovered(prefixes: readonly string[]): string[] {
  const sorted = [...new Set(prefixes)].sort();
  return sorted.filter((prefix) => !sorted.some((other) => other !== prefix && prefix.startsWith(other)));
}
