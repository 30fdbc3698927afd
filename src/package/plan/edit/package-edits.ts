import { type Kptfile, type KptfileEdit, readKptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid, TreeEdit } from '../../../git/git-repository.ts';
import { derivePackage, type PackageContent, skippedPath } from '../../model/content/content.ts';
import { checkPackageSize } from '../../model/content/package-size.ts';
import { APPROVAL_ALLOWED_TYPE, READY_TYPE } from '../../model/gates/ready-type.ts';
import { type IssuedCondition, plainCondition } from '../../model/gates/verdict.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { Rendering } from '../ports/renderer.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { editKptfileText } from './edit-kptfile-text.ts';
import { renderedKptfile } from './render.ts';
import { replaceFiles, type WholeFiles } from './replace-texts.ts';

/** The mode of a file that is executable, or is not. */
export type RegularMode = '100644' | '100755';

/** The file edits of a change. */
export interface PackageEdits {
  /** Files by path below the package folder; null removes. Only in Draft. */
  readonly files?: ReadonlyMap<string, Uint8Array | null>;
  /** Modes of files where they change; others keep theirs. Only in Draft. */
  readonly modes?: ReadonlyMap<string, RegularMode>;
  /** All files: others go. Only in Draft. */
  readonly whole?: WholeFiles;
  /** Edits of the Kptfile other than conditions, applied after `files`. Gates can be added in Proposed too. */
  readonly kptfile?: readonly KptfileEdit[];
  /** Conditions to give; each is bound to its inputs again, also where the text stays the same. In Draft and Proposed. */
  readonly conditions?: readonly IssuedCondition[];
  /** Condition types to take back. In Draft and Proposed. */
  readonly withdraw?: readonly string[];
}

/** All edits as file contents: given files, then the Kptfile with its own edits and the conditions. */
export function fileEdits(
  revision: PackageRevision,
  content: PackageContent,
  change: PackageEdits,
): Map<string, Uint8Array | null> {
  const edits = new Map([
    ...(change.whole === undefined ? [] : replaceFiles(revision.name, content, change.whole)),
    ...(change.files ?? []),
  ]);
  const kptfileEdits: KptfileEdit[] = [
    ...(change.kptfile ?? []),
    ...(change.withdraw ?? []).map((type) => ({ op: 'removeCondition', type }) as const),
    ...(change.conditions ?? []).map((given) => ({ op: 'setCondition', condition: plainCondition(given) }) as const),
  ];
  if (edits.has('Kptfile') && edits.get('Kptfile') === null) {
    throw new SluiceError(
      'InvalidInput',
      `the Kptfile of ${revision.name} cannot be removed; delete the revision instead`,
    );
  }
  const written = edits.get('Kptfile');
  // It must not get into Git when a client writes back an object that it read.
  for (const type of [READY_TYPE, APPROVAL_ALLOWED_TYPE])
    if (written != null && Buffer.from(written).includes(type)) kptfileEdits.push({ op: 'removeCondition', type });
  if (kptfileEdits.length > 0) {
    const text = edits.get('Kptfile') ?? content.files.get('Kptfile');
    if (text === undefined) throw new SluiceError('InvalidInput', `${revision.name} has no Kptfile to edit`);
    edits.set('Kptfile', Buffer.from(editKptfileText(revision.name, Buffer.from(text).toString('utf8'), kptfileEdits)));
  }
  return edits;
}

/** Returns the Kptfiles in the files of a change: problems of other files are not those of the caller. */
export function writtenKptfiles(
  content: PackageContent,
  { whole, files }: PackageEdits,
  edits: ReadonlyMap<string, Uint8Array | null>,
): ReadonlyMap<string, Uint8Array | null> {
  if (whole === undefined && files === undefined) return new Map();
  return new Map([...edits].filter(([path, data]) => !sameData(content.files.get(path), data)));
}

/** Adds what rendering changes to the edits of a change. */
export function applyRendering(
  edits: Map<string, Uint8Array | null>,
  content: PackageContent,
  rendering: Rendering,
): void {
  for (const [path, text] of rendering.edits ?? []) edits.set(path, text === null ? null : Buffer.from(text));
  const text = edits.get('Kptfile') ?? content.files.get('Kptfile');
  if (text === undefined) return;
  edits.set('Kptfile', Buffer.from(renderedKptfile(Buffer.from(text).toString('utf8'), rendering)));
}

export async function applyEdits(
  repo: RepositoryContext,
  revision: PackageRevision,
  content: PackageContent,
  edits: ReadonlyMap<string, Uint8Array | null>,
  modes: ReadonlyMap<string, RegularMode> = new Map(),
): Promise<{ root: Oid; package: PackageContent; kptfile: Kptfile | undefined }> {
  const changed = new Map([...edits].filter(([path, data]) => !sameData(content.files.get(path), data)));
  if (changed.size === 0 && modes.size === 0) return { root: '', package: content, kptfile: revision.kptfile };
  const files = new Map<string, Uint8Array>(content.files);
  for (const [path, data] of changed) {
    if (data === null) files.delete(path);
    else files.set(path, data);
  }
  checkPackageSize(revision.name, files, content.skipped.map(skippedPath));
  const treeEdits = new Map<string, TreeEdit>();
  for (const path of new Set([...changed.keys(), ...modes.keys()])) {
    const data = files.get(path);
    const mode = modes.get(path);
    treeEdits.set(`${revision.path}/${path}`, data === undefined ? null : { data, ...(mode && { mode }) });
  }
  const commit = await repo.git.readCommit(revision.commit);
  const root = await repo.git.editTree(commit.tree, treeEdits);
  const kptfileText = changed.get('Kptfile');
  let kptfile = revision.kptfile;
  if (kptfileText !== undefined && kptfileText !== null) {
    const result = readKptfile(kptfileText);
    if (!result.ok) throw new SluiceError('InvalidInput', `Kptfile: ${result.error.message}`, { cause: result.error });
    kptfile = result.kptfile;
  }
  return {
    root,
    package: await derivePackage(repo.git, `${root}:${revision.path}`, content, changed, kptfile),
    kptfile,
  };
}

export function sameData(before: Buffer | undefined, after: Uint8Array | null): boolean {
  if (before === undefined || after === null) return before === undefined && after === null;
  return before.equals(after);
}
