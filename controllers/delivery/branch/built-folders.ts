import { blobIdOf, type DesiredFile } from '../../../src/delivery/tree/desired-file.ts';
import type { ManifestsOutcome } from '../../../src/delivery/tree/manifests.ts';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import type { Oid } from '../../../src/git/git-repository.ts';

/** The result of building a tree: its manifests, and its content digest if it could be read. */
export interface BuildResult {
  readonly outcome: ManifestsOutcome<DesiredFile>;
  readonly content: string | undefined;
}

/** Bytes of manifests that are kept. For packages beyond it only the ids of the files are kept. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Estimated bytes that paths and ids may use: those of some 300,000 files. */
const MAX_THIN_BYTES = 64 * 1024 * 1024;
/** Estimated bytes of a map entry with an id, beside its path. */
const FILE_OVERHEAD_BYTES = 150;
/** Estimated bytes of the name and the place of an object, beside their text. */
const OBJECT_OVERHEAD_BYTES = 100;

/**
 * Manifests by the tree that they were built from. Each reconciliation compares all packages of a target, and mostly finds that the
 * branch has them already. Ids are enough for that, so packages beyond the budget are not rebuilt each time.
 */
export class BuiltFolders {
  readonly #full: LruCache<Oid, BuildResult>;
  readonly #thin: LruCache<Oid, BuildResult>;

  constructor(maxSize = MAX_BYTES, maxThinSize = MAX_THIN_BYTES) {
    this.#thin = new LruCache({ maxSize: maxThinSize });
    this.#full = new LruCache({
      maxSize,
      onEvict: (tree, built) => {
        const thin = thinOf(built);
        this.#thin.set(tree, thin.built, thin.bytes);
      },
    });
  }

  get(tree: Oid): BuildResult | undefined {
    return this.#full.get(tree) ?? this.#thin.get(tree);
  }

  put(tree: Oid, built: BuildResult): void {
    this.#thin.delete(tree);
    this.#full.set(tree, built, bytesOf(built));
  }

  /** Bytes in use, estimated. */
  get size(): { readonly bytes: number; readonly thinBytes: number } {
    return { bytes: this.#full.size, thinBytes: this.#thin.size };
  }
}

function bytesOf({ outcome }: BuildResult): number {
  let bytes = FILE_OVERHEAD_BYTES;
  for (const [path, file] of outcome.manifests?.files ?? [])
    bytes += FILE_OVERHEAD_BYTES + path.length + (file instanceof Uint8Array ? file.length : 0);
  for (const [identity, place] of outcome.manifests?.places ?? [])
    bytes += OBJECT_OVERHEAD_BYTES + identity.length + place.length;
  return bytes;
}

function thinOf(built: BuildResult): { readonly built: BuildResult; readonly bytes: number } {
  const { outcome, content } = built;
  if (outcome.manifests === undefined) return { built, bytes: FILE_OVERHEAD_BYTES + outcome.refused.message.length };
  const files = new Map(
    Array.from(outcome.manifests.files, ([path, file]) => {
      // A build file gets a line for each target, so its id is not enough.
      const isNeeded = path === outcome.manifests.buildFile;
      return [path, isNeeded ? file : { oid: blobIdOf(file) }] as const;
    }),
  );
  const thin: BuildResult = { outcome: { manifests: { ...outcome.manifests, files } }, content };
  return { built: thin, bytes: bytesOf(thin) };
}
