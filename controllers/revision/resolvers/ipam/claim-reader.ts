import type { FileEntry, GitRepository, Oid } from '../../../../src/git/git-repository.ts';
import { isYamlPath, type KrmObject, readKrmFile } from '../../../../src/package/krm.ts';
import { IPAM_GROUP, isGivenUp, isIpClaim } from './ip-claim.ts';

/** Files beyond this size hold no claims that anyone could read; see readKrmFile. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Files that are read in one go. */
const BATCH = 200;
/** Trees and blobs that are remembered; the oldest are read again if they are asked for. */
const REMEMBERED = 100_000;

const NO_CLAIMS: readonly KrmObject[] = [];

/**
 * Finds the IP claims in packages. What was read once is known by its id, so another revision costs its changed files, and a
 * file without claims costs a search for one word.
 */
export class ClaimReader {
  readonly #trees = new Map<Oid, Promise<readonly KrmObject[]>>();
  readonly #blobs = new Map<Oid, readonly KrmObject[]>();

  /** The claims in a package's tree, without those that were given up. Throws what the repository throws. */
  read(git: GitRepository, tree: Oid): Promise<readonly KrmObject[]> {
    const known = this.#trees.get(tree);
    if (known !== undefined) return known;
    const read = this.#read(git, tree);
    remember(this.#trees, tree, read);
    read.catch(() => this.#trees.delete(tree));
    return read;
  }

  async #read(git: GitRepository, tree: Oid): Promise<readonly KrmObject[]> {
    const files = (await git.listFiles(tree)).filter(({ mode, path }) => mode.startsWith('100') && isYamlPath(path));
    const unknown = files.filter(({ oid }) => !this.#blobs.has(oid));
    for (let start = 0; start < unknown.length; start += BATCH)
      await this.#load(git, unknown.slice(start, start + BATCH));
    const claims = files.flatMap(({ oid }) => this.#blobs.get(oid) ?? NO_CLAIMS);
    return claims.length === 0 ? NO_CLAIMS : claims;
  }

  async #load(git: GitRepository, files: readonly FileEntry[]): Promise<void> {
    const stats = await git.statObjects(files.map(({ oid }) => oid));
    const small = files.filter((_file, place) => (stats[place]?.size ?? Number.POSITIVE_INFINITY) <= MAX_FILE_BYTES);
    const objects = await git.readObjects(small.map(({ oid }) => oid));
    for (const { oid } of files) remember(this.#blobs, oid, NO_CLAIMS);
    for (const [place, { oid, path }] of small.entries()) {
      const data = objects[place]?.data;
      if (data?.includes(IPAM_GROUP) !== true) continue;
      const claims = readKrmFile(path, data).objects.filter((object) => isIpClaim(object) && !isGivenUp(object));
      if (claims.length > 0) this.#blobs.set(oid, claims);
    }
  }
}

function remember<Value>(cache: Map<Oid, Value>, oid: Oid, value: Value): void {
  cache.set(oid, value);
  const oldest = cache.keys().next().value;
  if (cache.size > REMEMBERED && oldest !== undefined) cache.delete(oldest);
}
