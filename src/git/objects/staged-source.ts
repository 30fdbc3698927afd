import type { GitObject, ObjectStat, Oid } from '../git-repository.ts';
import {
  batchTooLarge,
  MAX_BATCH_BYTES,
  MAX_OBJECT_BYTES,
  type NewObject,
  type ObjectSource,
  objectTooLarge,
} from './object-source.ts';
import type { StagedObjects } from './staged-objects.ts';
import { targetOfTag } from './tag-codec.ts';
import { encodeName, findEntry } from './tree-codec.ts';

/**
 * Serves staged objects from memory, and all others from the repository in one round trip. A path is followed in memory as long as its
 * trees are staged. Objects on disk refer only to objects on disk, so a path never returns from disk to memory.
 */
export class StagedSource implements ObjectSource {
  readonly #stage: StagedObjects;
  readonly #source: ObjectSource;

  constructor(stage: StagedObjects, source: ObjectSource) {
    this.#stage = stage;
    this.#source = source;
  }

  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    let bytes = 0;
    const fromMemory = ({ oid, type, data }: NewObject): GitObject => {
      bytes += data.length;
      if (data.length > MAX_OBJECT_BYTES) throw objectTooLarge(oid, data.length);
      if (bytes > MAX_BATCH_BYTES) throw batchTooLarge();
      // A copy: the reader may change it.
      return { oid, type, size: data.length, data: Buffer.from(data) };
    };
    return this.#read(specifications, fromMemory, (rest) => this.#source.readObjects(rest));
  }

  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    const fromMemory = ({ oid, type, data }: NewObject): ObjectStat => ({ oid, type, size: data.length });
    return this.#read(specifications, fromMemory, (rest) => this.#source.statObjects(rest));
  }

  async #read<Answer>(
    specifications: readonly string[],
    fromMemory: (object: NewObject) => Answer,
    fromSource: (specifications: readonly string[]) => Promise<(Answer | undefined)[]>,
  ): Promise<(Answer | undefined)[]> {
    const located = specifications.map((specification) => this.#locate(specification));
    const rest = located.filter((place) => typeof place === 'string');
    const answers = rest.length === 0 ? [] : await fromSource(rest);
    let next = 0;
    return located.map((place) => {
      if (typeof place !== 'string') return place === undefined ? undefined : fromMemory(place);
      next += 1;
      return answers[next - 1];
    });
  }

  /** The object, or undefined if there is certainly none, or what to read from the repository. */
  #locate(specification: string): NewObject | string | undefined {
    const colon = specification.indexOf(':');
    if (colon < 0) return this.#stage.get(specification) ?? specification;
    const path = specification.slice(colon + 1);
    let root = this.#stage.get(specification.slice(0, colon));
    while (root?.type === 'tag') {
      const target = targetOfTag(root.data) ?? '';
      root = this.#stage.get(target);
      if (root === undefined) return `${target}:${path}`;
    }
    if (root === undefined) return specification;
    let oid = root.type === 'commit' ? treeOf(root) : root.oid;
    const segments = path === '' ? [] : path.split('/');
    for (const [depth, segment] of segments.entries()) {
      const tree = this.#stage.get(oid);
      if (tree === undefined) return `${oid}:${segments.slice(depth).join('/')}`;
      if (tree.type !== 'tree') return undefined;
      const entry = findEntry(tree.data, encodeName(segment));
      if (entry === undefined) return undefined;
      oid = entry.oid;
      if (depth === segments.length - 1) return this.#stage.get(oid) ?? oid;
      if (entry.mode !== '040000') return undefined;
    }
    const tree = this.#stage.get(oid);
    if (tree === undefined) return `${oid}:`;
    return tree.type === 'tree' ? tree : undefined;
  }
}

/** Commits in memory come from our own encoder, which begins with the tree. */
function treeOf({ data }: NewObject): Oid {
  return Buffer.from(data.subarray(5, 45)).toString('latin1');
}
