import { blobIdOf, type WantedFile } from '../../src/delivery/branch-view.ts';
import type { ManifestsOutcome } from '../../src/delivery/manifests.ts';
import type { Oid } from '../../src/git/git-repository.ts';

/** What a tree gives: its manifests, and its content digest if it could be read. */
export interface Built {
  readonly outcome: ManifestsOutcome<WantedFile>;
  readonly content: string | undefined;
}

/** Bytes of manifests that are kept. What does not fit is kept as the ids of its files. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Bytes that paths and ids may take, as estimated: those of some 300,000 files. */
const MAX_THIN_BYTES = 64 * 1024 * 1024;
/** What an entry of a map with an id takes beside its path. */
const FILE_OVERHEAD = 150;
/** What the name and the place of an object take beside their text. */
const OBJECT_OVERHEAD = 100;

/**
 * Manifests by the tree that they were built from. A target looks at all its packages again and again, mostly to find that the
 * branch has them: for that ids are enough, so that what is beyond the budget is not built again at each look.
 */
export class BuiltFolders {
  readonly #maxBytes: number;
  readonly #maxThinBytes: number;
  readonly #full = new Map<Oid, { readonly built: Built; readonly bytes: number }>();
  readonly #thin = new Map<Oid, { readonly built: Built; readonly bytes: number }>();
  #bytes = 0;
  #thinBytes = 0;

  constructor(maxBytes = MAX_BYTES, maxThinBytes = MAX_THIN_BYTES) {
    this.#maxBytes = maxBytes;
    this.#maxThinBytes = maxThinBytes;
  }

  get(tree: Oid): Built | undefined {
    return touched(this.#full, tree) ?? touched(this.#thin, tree);
  }

  put(tree: Oid, built: Built): void {
    this.#drop(tree);
    const bytes = bytesOf(built);
    this.#full.set(tree, { built, bytes });
    this.#bytes += bytes;
    for (const [oldest, entry] of this.#full) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#full.delete(oldest);
      this.#bytes -= entry.bytes;
      const thin = thinOf(entry.built);
      this.#thin.set(oldest, thin);
      this.#thinBytes += thin.bytes;
    }
    for (const [oldest, entry] of this.#thin) {
      if (this.#thinBytes <= this.#maxThinBytes) break;
      this.#thin.delete(oldest);
      this.#thinBytes -= entry.bytes;
    }
  }

  /** Bytes that are taken, as estimated. */
  get size(): { readonly bytes: number; readonly thinBytes: number } {
    return { bytes: this.#bytes, thinBytes: this.#thinBytes };
  }

  #drop(tree: Oid): void {
    this.#bytes -= this.#full.get(tree)?.bytes ?? 0;
    this.#thinBytes -= this.#thin.get(tree)?.bytes ?? 0;
    this.#full.delete(tree);
    this.#thin.delete(tree);
  }
}

/** Used last, dropped last. */
function touched(entries: Map<Oid, { readonly built: Built; readonly bytes: number }>, tree: Oid): Built | undefined {
  const entry = entries.get(tree);
  if (entry === undefined) return undefined;
  entries.delete(tree);
  entries.set(tree, entry);
  return entry.built;
}

function bytesOf({ outcome }: Built): number {
  let bytes = FILE_OVERHEAD;
  for (const [path, file] of outcome.manifests?.files ?? [])
    bytes += FILE_OVERHEAD + path.length + (file instanceof Uint8Array ? file.length : 0);
  for (const [identity, place] of outcome.manifests?.places ?? [])
    bytes += OBJECT_OVERHEAD + identity.length + place.length;
  return bytes;
}

function thinOf(built: Built): { readonly built: Built; readonly bytes: number } {
  const { outcome, content } = built;
  if (outcome.manifests === undefined) return { built, bytes: FILE_OVERHEAD + outcome.refused.message.length };
  const files = new Map(
    Array.from(outcome.manifests.files, ([path, file]) => [path, { oid: blobIdOf(file) }] as const),
  );
  const thin: Built = { outcome: { manifests: { ...outcome.manifests, files } }, content };
  return { built: thin, bytes: bytesOf(thin) };
}
