import { SluiceError } from '../../../foundation/sluice-error.ts';
import { EMPTY_TREE, type Oid } from '../../../git/git-repository.ts';
import { mergeBase } from '../../../git/objects/merge-base.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { describeForeign } from '../../kernel/foreign-files.ts';
import { isEdited } from '../../kernel/main-edit.ts';
import { mergePackage } from '../../merge/merge-package.ts';
import { overwrittenTexts } from '../../merge/overwritten.ts';
import { type PackageFiles, sameFile } from '../../merge/package-files.ts';
import type { OverwrittenBy } from '../../merge/still-overwritten.ts';
import { PUSH_ACTOR } from '../../model/gates/verdict.ts';
import { type RevisionRecord, withContributor } from '../../model/record/record.ts';
import { isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import { readPackageFiles } from '../../upstream/upstream-reader.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { readOnMain } from '../records/on-main.ts';
import type { RegularMode } from './package-edits.ts';

export const REBASE_MODES = ['merge', 'keep'] as const;
/** `merge` merges what changed on the main branch into the draft; `keep` leaves the files of the draft as they are. */
type RequestedMode = (typeof REBASE_MODES)[number];
/** `publication` merges as well, and of files without resources that both sides changed it has those of the main branch. */
export type RebaseMode = RequestedMode | 'publication';

/** The main branch as the new base of an unpublished revision. */
export interface Rebase {
  /** Head of the main branch, and its tree. */
  readonly head: Oid;
  readonly root: Oid;
  readonly base: NonNullable<RevisionRecord['base']>;
  /** What the merge changes in the revision; null removes. */
  readonly files: ReadonlyMap<string, Uint8Array | null>;
  /** Files that become executable, or are it no longer. */
  readonly modes: ReadonlyMap<string, RegularMode>;
  /** The branch contains the head already, and loses what it has outside of the package. */
  readonly isStripped?: true;
  /** The merged package is no publication that counts, so that its authors are not known. */
  readonly isUnknown: boolean;
  /** What the merge overwrites in the revision. */
  readonly overwritten?: OverwrittenBy;
}

const MAX_SHOWN_FILES = 10;

/**
 * Plans to base a revision on the head of the main branch; undefined if it is. Warns about files that both sides changed. A proposal is only
 * based on what does not conflict with it: what it contains was reviewed. Warns about other files that the branch loses, too.
 */
export async function planRebase(
  repo: RepositoryContext,
  revision: PackageRevision,
  record: RevisionRecord,
  mode: RebaseMode,
  context: RequestContext,
): Promise<Rebase | undefined> {
  const { name, path, commit, lifecycle } = revision;
  const head = repo.index.mainHead;
  if (head === undefined)
    throw new SluiceError('Refused', `cannot rebase ${name}: the branch ${repo.layout.branch} does not exist`);
  if (isPublished(revision))
    throw new SluiceError('Refused', `cannot rebase ${name}: it is ${lifecycle}; copy it to a new workspace`);
  if (lifecycle === 'Proposed') {
    const onMain = mode === 'keep' ? await readOnMain(repo, revision, record, head) : undefined;
    if (mode !== 'keep' || (onMain !== undefined && isEdited(onMain)))
      throw new SluiceError(
        'Refused',
        `cannot rebase ${name}: it is Proposed, and its content must not change; "sluice rpkg reject ${name}" returns it to Draft`,
      );
  }
  const rebase = await planOnMain(repo, revision, record, { mode, head }, context);
  const foreign = rebase && (await repo.foreign.ofHead({ commit, paths: [path], base: record.base?.commit }, head));
  if (foreign !== undefined)
    context.warn?.(
      `the branch of ${name} has the package alone now: it had ${describeForeign({ foreign })}, which ${commit} still has`,
    );
  return rebase;
}

/** What the main branch at `head` makes of the package. */
async function planOnMain(
  repo: RepositoryContext,
  revision: PackageRevision,
  record: RevisionRecord,
  { mode, head }: { readonly mode: RebaseMode; readonly head: Oid },
  context: RequestContext,
): Promise<Rebase | undefined> {
  const { git, index } = repo;
  const { path, commit, lifecycle } = revision;
  const common = await mergeBase(git, commit, head);
  const stripped = mode === 'keep' && common === head ? await planStrip(repo, revision, record, head) : undefined;
  if (stripped !== undefined) return stripped;
  if (common === head && (record.base === undefined || record.base.commit !== head)) return undefined;
  const [now, then] = await git.statObjects([
    `${head}:${path}`,
    ...(common === undefined ? [] : [`${common}:${path}`]),
  ]);
  // What a push merged is newer than what the server recorded.
  const isRecorded = record.base !== undefined && (common === undefined || common === record.base.commit);
  const recorded = isRecorded ? record.base : undefined;
  const from = isRecorded ? treeBefore(recorded, lifecycle) : then?.oid;
  if (common === head && from === now?.oid) return undefined;
  // What the publication changed is still undone: the files stay as they were, without a user who wanted that.
  const isUndoing = lifecycle === 'Proposed' && now?.oid !== from;
  const derivedFrom = recorded?.derivedFrom ?? (isUndoing ? (from ?? EMPTY_TREE) : undefined);
  const base = {
    commit: head,
    ...(now === undefined ? {} : { tree: now.oid }),
    ...(derivedFrom === undefined || lifecycle !== 'Proposed' ? {} : { derivedFrom }),
  };
  const { tree: root } = await git.readCommit(head);
  const isMerged = mode !== 'keep' && now?.type === 'tree' && now.oid !== from;
  const merged = isMerged
    ? await merge(repo, revision, { from, onMain: now.oid, mode }, context)
    : { files: new Map(), modes: new Map() };
  const isUnknown = !index
    .ofPackage(revision.key.package)
    .some(({ ref, outOfBand, tip }) => ref.startsWith('refs/tags/') && !outOfBand && tip.tree === now?.oid);
  return { head, root, base, ...merged, isUnknown };
}

/** The package that the content is derived from; a draft that was a proposal is derived from what that was derived from. */
function treeBefore(base: RevisionRecord['base'], lifecycle: PackageRevision['lifecycle']): Oid | undefined {
  if (lifecycle !== 'Draft' || base?.derivedFrom === undefined) return base?.tree;
  return base.derivedFrom === EMPTY_TREE ? undefined : base.derivedFrom;
}

/** The main branch that the branch contains, with the package alone; undefined if it has nothing else. */
async function planStrip(
  { git }: RepositoryContext,
  { commit, path, tip: { tree } }: PackageRevision,
  record: RevisionRecord,
  head: Oid,
): Promise<Rebase | undefined> {
  if (tree === undefined) return undefined;
  const { tree: root } = await git.readCommit(head);
  const alone = await git.editTree(root, new Map([[path, { oid: tree, mode: '040000' }]]));
  if (alone === (await git.readCommit(commit)).tree) return undefined;
  const [now] = await git.statObjects([`${head}:${path}`]);
  const base = record.base ?? { commit: head, ...(now === undefined ? {} : { tree: now.oid }) };
  return { head, root, base, files: new Map(), modes: new Map(), isStripped: true, isUnknown: false };
}

/** The main branch with the package of the revision. */
export function treeOnto(
  { git }: RepositoryContext,
  { path }: PackageRevision,
  { root }: Rebase,
  tree: Oid,
): Promise<Oid> {
  return git.editTree(root, new Map([[path, { oid: tree, mode: '040000' }]]));
}

/** The merge has content of the main branch, whose authors are not known unless it was published. */
export function withMergedAuthors(record: RevisionRecord, { isUnknown, head }: Rebase, at: string): RevisionRecord {
  if (!isUnknown) return record;
  const unknown = { actor: { name: PUSH_ACTOR }, face: 'git' } as const;
  return { ...record, contributors: withContributor(record.contributors ?? [], unknown, at, head) };
}

async function merge(
  { git }: RepositoryContext,
  { commit, path, name }: PackageRevision,
  { from, onMain, mode }: { readonly from: Oid | undefined; readonly onMain: Oid; readonly mode: RebaseMode },
  context: RequestContext,
): Promise<Pick<Rebase, 'files' | 'modes' | 'overwritten'>> {
  const local = await readPackageFiles(git, `${commit}:${path}`);
  const original: PackageFiles = from === undefined ? new Map() : await readPackageFiles(git, from);
  const updated = await readPackageFiles(git, onMain);
  const texts = mode === 'publication' ? 'updated' : 'local';
  const { files, keptLocal, overwritten, replaced } = mergePackage(local, original, updated, { texts });
  const changed = (side: PackageFiles, file: string) => !sameFile(side.get(file), original.get(file));
  const both = [...new Set([...local.keys(), ...original.keys()])]
    .filter((file) => changed(local, file) && changed(updated, file) && !sameFile(local.get(file), updated.get(file)))
    .sort();
  const merged = both.filter((file) => !keptLocal.includes(file) && !replaced.includes(file));
  if (merged.length > 0)
    context.warn?.(
      `changed on both sides: ${listed(merged)}; where both changed the same field, ${name} has the value of the main branch now; review it before you propose it`,
    );
  for (const text of overwrittenTexts(overwritten)) context.warn?.(`overwritten by the main branch: ${text}`);
  const kept = [
    ...(replaced.length > 0 ? [`changed on both sides, and kept as on the main branch: ${listed(replaced)}`] : []),
    ...(keptLocal.length > 0 ? [`changed on both sides, and kept as in ${name}: ${listed(keptLocal)}`] : []),
  ].join('; ');
  if (kept !== '') context.warn?.(`${kept}; review it before you propose it`);
  const edits = new Map<string, Uint8Array | null>();
  for (const file of local.keys()) if (!files.has(file)) edits.set(file, null);
  for (const [file, next] of files) if (!sameFile(local.get(file), next)) edits.set(file, next.data);
  return {
    files: edits,
    modes: mergedModes({ local, original, updated }, files.keys()),
    overwritten: { by: 'the main branch', overwritten, kept: kept === '' ? undefined : kept, local, original },
  };
}

/** Of each file the mode on the main branch where it changed there, else that of the draft; only what changes in the draft. */
function mergedModes(
  { local, original, updated }: Readonly<Record<'local' | 'original' | 'updated', PackageFiles>>,
  files: Iterable<string>,
): Map<string, RegularMode> {
  const modes = new Map<string, RegularMode>();
  const isExecutable = (side: PackageFiles, file: string) => side.get(file)?.executable === true;
  for (const file of files) {
    const next = isExecutable(updated, file);
    if (!updated.has(file) || next === isExecutable(original, file) || next === isExecutable(local, file)) continue;
    modes.set(file, next ? '100755' : '100644');
  }
  return modes;
}

function listed(files: readonly string[]): string {
  const more = files.length - MAX_SHOWN_FILES;
  return `${files.slice(0, MAX_SHOWN_FILES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
