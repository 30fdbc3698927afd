import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Oid, Ref } from '../git-repository.ts';
import { LooseRefs } from './loose-refs.ts';
import { PackedRefs } from './packed-refs.ts';

/**
 * Reads refs from Git's files: loose files first, then `packed-refs`, so that a ref that is packed in between is found in one of the
 * two. Each value is one the ref had during the call; a transaction of another process may be seen in part.
 */
export class RefFiles {
  readonly gitDir: string;
  readonly #loose: LooseRefs;
  #packed: { readonly key: string; readonly refs: PackedRefs } | undefined;

  constructor(gitDir: string) {
    this.gitDir = gitDir;
    this.#loose = new LooseRefs(gitDir);
  }

  /** Refs with one of the prefixes, all without any, sorted by name. */
  async list(prefixes: readonly string[]): Promise<Ref[]> {
    const wanted = prefixes.length === 0 ? ['refs/'] : withoutCovered(prefixes);
    const loose = new Map<string, Oid | undefined>();
    for (const prefix of wanted) await this.#loose.addBelow(prefix, loose);
    const packed = await this.packed();
    const stillPacked = wanted.flatMap((prefix) => packed.withPrefix(prefix).filter(({ name }) => !loose.has(name)));
    const changed = [...loose].flatMap(([name, oid]) => (oid === undefined ? [] : [{ name, oid }]));
    return mergeSorted(stillPacked, changed.sort(byName));
  }

  /** The refs below a folder (`refs/`) that have a loose file, in no order, without the cache. */
  async listLoose(prefix: string): Promise<Ref[]> {
    const loose = new Map<string, Oid | undefined>();
    await new LooseRefs(this.gitDir).addBelow(prefix, loose);
    return [...loose].flatMap(([name, oid]) => (oid === undefined ? [] : [{ name, oid }]));
  }

  /** Returns the object id of a ref; undefined if it does not exist or is symbolic. */
  async resolve(name: string): Promise<Oid | undefined> {
    const loose = this.readLoose(name);
    if (loose !== undefined) return loose === 'symbolic' ? undefined : loose;
    return (await this.packed()).get(name);
  }

  /** The loose value of a ref; undefined if there is no file (or a folder in its place). */
  readLoose(name: string): Oid | 'symbolic' | undefined {
    return this.#loose.read(name);
  }

  /** The packed refs, parsed again only when the file was replaced. */
  async packed(): Promise<PackedRefs> {
    const path = join(this.gitDir, 'packed-refs');
    for (;;) {
      const key = fileKey(path);
      if (key === undefined) return PackedRefs.EMPTY;
      if (this.#packed?.key === key) return this.#packed.refs;
      const refs = await PackedRefs.parse(await readFile(path));
      // Read again if the file was replaced between the two calls.
      if (fileKey(path) !== key) continue;
      this.#packed = { key, refs };
      return refs;
    }
  }

  /**
   * Notes packed refs that the caller has just written, so that they are not parsed again. Requires the lock of
   * `packed-refs`.
   */
  replacedPacked(refs: PackedRefs): void {
    const key = fileKey(join(this.gitDir, 'packed-refs'));
    this.#packed = key === undefined ? undefined : { key, refs };
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

/** Changes whenever the file is replaced; undefined if there is none. Called every second or so: an asynchronous call would cost more than it takes. */
function fileKey(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

/** Prefixes without those that another one covers, so that no ref is listed twice. */
function withoutCovered(prefixes: readonly string[]): string[] {
  const sorted = [...new Set(prefixes)].sort();
  return sorted.filter((prefix) => !sorted.some((other) => other !== prefix && prefix.startsWith(other)));
}
