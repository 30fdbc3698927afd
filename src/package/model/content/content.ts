import { contentOf, type Kptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { canonicalJson, digest } from '../../../foundation/text/canonical-json.ts';
import type { FileEntry, GitRepository, Oid, TreeEntry } from '../../../git/git-repository.ts';
import { isOid } from '../../../git/objects/object-id.ts';
import { isYamlPath, type KrmObject, readKrmFile } from '../krm/krm.ts';
import { prepareKrmFiles } from '../krm/krm-reader.ts';
import { readsAlike } from '../krm/line-breaks.ts';
import { ObjectDigests } from '../krm/object-digest.ts';
import { formatConditionType, parseConditionType } from '../policy/condition-type.ts';
import type { PackageInputs } from './inputs.ts';
import { MAX_BYTES, MAX_FILES } from './package-size.ts';

/** One version of a package, read once and kept by the id of its tree. */
export interface PackageContent extends PackageInputs {
  readonly tree: Oid;
  /** All regular files by their path below the package folder, without symbolic links and submodules. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Paths of entries that are neither files nor folders, with the reason why they are omitted. */
  readonly skipped: readonly string[];
  /** The KRM objects of all YAML files, nested packages included, in path order. */
  objects(): readonly KrmObject[];
}

/**
 * The content digest: the identity of a package without Kptfile status and readiness gates. It is computed from the top-level entries
 * (subfolders count by their tree id), so it costs one tree read regardless of the size of the package. `text` is that of the Kptfile;
 * if YAML readers may parse it differently, it counts unchanged, including status and gates.
 */
export function contentDigest(
  entries: readonly TreeEntry[],
  kptfile: Kptfile | undefined,
  text: Uint8Array | undefined,
): string {
  const isReadAlike = text !== undefined && readsAlike(text);
  const parts = entries.flatMap((entry) => {
    if (entry.name === 'Kptfile' && kptfile !== undefined && isReadAlike)
      return [`Kptfile=${canonicalJson(contentOf(kptfile))}`];
    return [`${entry.mode} ${JSON.stringify(entry.name)} ${entry.oid}`];
  });
  return digest(parts.join('\n'));
}

/** Reads a package at `<commit>:<path>`. Throws NotFound, and LimitExceeded above the bounds. */
export async function readPackage(
  git: GitRepository,
  specification: string,
  kptfile: Kptfile | undefined,
): Promise<PackageContent> {
  const [stat] = await git.statObjects([specification]);
  const entries = await git.readTree(specification);
  if (stat === undefined || entries === undefined) {
    // A tree id refers to a tree that existed.
    if (isOid(specification)) await git.expectObject(specification);
    throw new SluiceError('NotFound', `there is no package folder at ${specification}`);
  }
  const listed = await git.listFiles(specification, MAX_FILES);
  const regular = listed.filter((entry) => entry.mode === '100644' || entry.mode === '100755');
  const files = await readFiles(git, regular, specification);
  await prepareKrmFiles(files);
  const content = contentDigest(entries, kptfile, files.get('Kptfile'));
  return new Content(stat.oid, files, describeSkipped(listed), content);
}

/** The inputs of a package that is in no tree. Its content digest is none of Git, and compares with those made in the same way alone. */
export async function inputsInMemory(files: ReadonlyMap<string, Buffer>, content: string): Promise<PackageInputs> {
  await prepareKrmFiles(files);
  return new Content('', files, [], content);
}

/**
 * Returns the package after changes of some files, without reading the others again. `specification` identifies its new
 * tree.
 */
export async function derivePackage(
  git: GitRepository,
  specification: string,
  before: PackageContent,
  changed: ReadonlyMap<string, Uint8Array | null>,
  kptfile: Kptfile | undefined,
): Promise<PackageContent> {
  const [stat] = await git.statObjects([specification]);
  const entries = await git.readTree(specification);
  if (stat === undefined || entries === undefined) {
    throw new SluiceError(
      'InvalidInput',
      'a change must not remove all files of a package; delete the revision instead',
    );
  }
  const files = new Map(before.files);
  for (const [path, data] of changed) {
    if (data === null) files.delete(path);
    else files.set(path, Buffer.from(data));
  }
  await prepareKrmFiles(files);
  const sorted = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
  return new Content(stat.oid, sorted, before.skipped, contentDigest(entries, kptfile, files.get('Kptfile')));
}

async function readFiles(
  git: GitRepository,
  entries: readonly FileEntry[],
  where: string,
): Promise<ReadonlyMap<string, Buffer>> {
  const oids = entries.map((entry) => entry.oid);
  const stats = await git.statObjects(oids);
  const total = stats.reduce((sum, stat) => sum + (stat?.size ?? 0), 0);
  if (total > MAX_BYTES) {
    throw new SluiceError('LimitExceeded', `the package at ${where} has ${total} bytes, at most ${MAX_BYTES} are read`);
  }
  const objects = await git.readObjects(oids);
  for (const [position, oid] of oids.entries()) if (objects[position] === undefined) await git.expectObject(oid);
  return new Map(
    entries.map((entry, position) => {
      const object = objects[position];
      if (object === undefined)
        throw new SluiceError('Corrupt', `${where}/${entry.path}: object ${entry.oid} is missing`);
      return [entry.path, object.data];
    }),
  );
}

/** The path in one of the texts of `skipped`. */
export function skippedPath(text: string): string {
  return text.slice(0, text.lastIndexOf(' ('));
}

function describeSkipped(entries: readonly FileEntry[]): string[] {
  return entries
    .filter((entry) => entry.mode === '120000' || entry.mode === '160000')
    .map((entry) => `${entry.path} (${entry.mode === '120000' ? 'symbolic link' : 'submodule'})`);
}

class Content implements PackageContent {
  readonly tree: Oid;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly skipped: readonly string[];
  readonly content: string;
  #objects: readonly KrmObject[] | undefined;
  #byType: ReadonlyMap<string, readonly KrmObject[]> | undefined;
  #written: ObjectDigests | undefined;
  #digests = new Map<string, string | undefined>();

  constructor(tree: Oid, files: ReadonlyMap<string, Buffer>, skipped: readonly string[], content: string) {
    this.tree = tree;
    this.files = files;
    this.skipped = skipped;
    this.content = content;
  }

  objects(): readonly KrmObject[] {
    this.#objects ??= [...this.files].flatMap(([path, data]) =>
      isYamlPath(path) ? readKrmFile(path, data).objects : [],
    );
    return this.#objects;
  }

  object(conditionType: string): string | undefined {
    if (!this.#digests.has(conditionType)) this.#digests.set(conditionType, this.#objectDigest(conditionType));
    return this.#digests.get(conditionType);
  }

  #objectDigest(conditionType: string): string | undefined {
    const subject = parseConditionType(conditionType);
    if (subject === undefined) return undefined;
    const found = this.#objectsOf(formatConditionType(subject));
    if (found.length === 0) return undefined;
    this.#written ??= new ObjectDigests(this.files);
    return this.#written.of(found);
  }

  formerObject(conditionType: string): string | undefined {
    const subject = parseConditionType(conditionType);
    const found = subject === undefined ? [] : this.#objectsOf(formatConditionType(subject));
    if (found.length === 0) return undefined;
    const withoutStatus = found.map(({ value }) => {
      const { status: _status, ...rest } = value;
      return canonicalJson(rest);
    });
    return digest(withoutStatus.sort().join('\n'));
  }

  /** By the condition type that names them, in any namespace, which is no part of it; found once for all, as there may be many of both. */
  #objectsOf(conditionType: string): readonly KrmObject[] {
    this.#byType ??= Map.groupBy(this.objects(), formatConditionType);
    return this.#byType.get(conditionType) ?? [];
  }

  file(path: string): string | undefined {
    const data = this.files.get(path);
    return data === undefined ? undefined : digest(data);
  }
}
