import { LruCache } from '../../../../src/foundation/lru-cache.ts';
import { SluiceError } from '../../../../src/foundation/sluice-error.ts';
import type { FileEntry, GitRepository, Oid } from '../../../../src/git/git-repository.ts';
import { isYamlPath, type KrmObject, readKrmFile } from '../../../../src/package/model/krm/krm.ts';
import { IPAM_GROUP, isAbandoned, isIpClaim } from './ip-claim.ts';

/** Larger files are not parsed, so they contain no claims; see readKrmFile. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Files that are read in one batch. */
const FILES_PER_READ = 200;
/** Maximum number of cached trees and blobs; others are read again when they are needed. */
const MAX_CACHED = 100_000;

const NO_CLAIMS: readonly KrmObject[] = [];

/**
 * Finds the IP claims in packages. Results are cached by object id, so another revision costs its changed files, and a
 * file without claims costs a search for one word. No result depends on the content of the caches.
 */
export class ClaimReader {
  readonly #trees: LruCache<Oid, Promise<readonly KrmObject[]>>;
  readonly #blobs: LruCache<Oid, readonly KrmObject[]>;

  constructor(maxEntries = MAX_CACHED) {
    this.#trees = new LruCache({ maxEntries });
    this.#blobs = new LruCache({ maxEntries });
  }

  /** The claims in a package's tree, without the abandoned ones. Throws what the repository throws; Corrupt for a missing blob. */
  read(git: GitRepository, tree: Oid): Promise<readonly KrmObject[]> {
    const known = this.#trees.get(tree);
    if (known !== undefined) return known;
    const read = this.#read(git, tree);
    this.#trees.set(tree, read);
    read.catch(() => this.#trees.delete(tree));
    return read;
  }

  async #read(git: GitRepository, tree: Oid): Promise<readonly KrmObject[]> {
    const files = (await git.listFiles(tree)).filter(({ mode, path }) => mode.startsWith('100') && isYamlPath(path));
    // Referenced for the whole read, since concurrent reads may evict blobs of this one from the cache.
    const found = new Map<Oid, readonly KrmObject[]>();
    const unknown: FileEntry[] = [];
    for (const file of files) {
      const known = this.#blobs.get(file.oid);
      if (known === undefined) unknown.push(file);
      else found.set(file.oid, known);
    }
    for (let start = 0; start < unknown.length; start += FILES_PER_READ)
      for (const [oid, claims] of await loadClaims(git, unknown.slice(start, start + FILES_PER_READ))) {
        found.set(oid, claims);
        this.#blobs.set(oid, claims);
      }
    const claims = files.flatMap(({ oid, path }) => {
      const inFile = found.get(oid);
      if (inFile === undefined) throw new SluiceError('Internal', `the IP claims of ${tree}:${path} were not read`);
      return inFile;
    });
    return claims.length === 0 ? NO_CLAIMS : claims;
  }
}

/** The claims of each file, by its id. Throws Corrupt for a file of the tree that is missing in the repository. */
async function loadClaims(
  git: GitRepository,
  files: readonly FileEntry[],
): Promise<ReadonlyMap<Oid, readonly KrmObject[]>> {
  const stats = await git.statObjects(files.map(({ oid }) => oid));
  for (const [place, { oid }] of files.entries()) if (stats[place] === undefined) await git.expectObject(oid);
  const small = files.filter((_file, place) => (stats[place]?.size ?? 0) <= MAX_FILE_BYTES);
  const objects = await git.readObjects(small.map(({ oid }) => oid));
  const found = new Map<Oid, readonly KrmObject[]>(files.map(({ oid }) => [oid, NO_CLAIMS]));
  for (const [place, { oid, path }] of small.entries()) {
    const data = objects[place]?.data;
    if (data === undefined) {
      await git.expectObject(oid);
      throw new SluiceError('Unavailable', `object ${oid} (${path}) could not be read; Sluice retries`);
    }
    if (!data.includes(IPAM_GROUP)) continue;
    const claims = readKrmFile(path, data).objects.filter((object) => isIpClaim(object) && !isAbandoned(object));
    if (claims.length > 0) found.set(oid, claims);
  }
  return found;
}
