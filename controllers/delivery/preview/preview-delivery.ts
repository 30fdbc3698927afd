import { settingsOf } from '../../../src/delivery/delivery-target.ts';
import { normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import type { Desired, DesiredRevision } from '../../../src/delivery/tree/desired-result.ts';
import { DesiredTree } from '../../../src/delivery/tree/desired-tree.ts';
import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { Mutex } from '../../../src/foundation/concurrency/mutex.ts';
import { isSluiceError, messageOf, SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { runInSlices } from '../../../src/package/index/steps.ts';
import { nextRevision } from '../../../src/package/kernel/next-revision.ts';
import { fileChanges, MAX_CHANGED_FILES_BYTES, MAX_PATCHES_BYTES } from '../../../src/package/model/diff/file-diff.ts';
import { tagRef } from '../../../src/package/model/identity/layout.ts';
import { isPublished, type PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionPreview, TargetPreview } from '../../../src/package/model/revision/revision-readings.ts';
import { hostedFolder } from '../../../src/package/store/opening/open-package-repository.ts';
import { selects } from '../../../src/package/store/policies/selected-packages.ts';
import { credentialsOf } from '../../../src/package/upstream/credentials.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { RequestContext } from '../../../src/resource/object/request-context.ts';
import { BuiltFolders } from '../branch/built-folders.ts';
import { packageRepositoryAt } from '../branch/package-branches.ts';
import { readBranch } from '../branch/read-branch.ts';
import { TargetBranch } from '../branch/target-branch.ts';
import { SUSPENDED } from '../delivery-report.ts';
import { deliveredBefore, findDrift } from '../drift/find-drift.ts';
import { type EditedFiles, editedFiles } from '../edited-files.ts';
import type { DeliveryExplainerOptions } from '../explain-delivery.ts';
import { hiddenPaths } from '../hidden-paths.ts';
import { type PackageFocus, WantedMemory, WantedRevisions } from '../wanted-revisions.ts';

/** Targets of one preview. */
const MAX_TARGETS = 100;
/** Targets whose branches are read at a time. */
const MAX_CONCURRENT_TARGETS = 4;
/** Bytes of manifests that are kept from one preview to the next. */
const MAX_CACHED_BYTES = 8 * 1024 * 1024;

/** The caller, who may stop waiting. */
interface Caller {
  readonly mayReadTarget: RequestContext['mayReadTarget'] | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A target before its files are compared. */
interface Outcome {
  readonly preview: Omit<TargetPreview, 'files'>;
  readonly files?: EditedFiles;
  /** Releases what `files` reads from. */
  readonly close?: () => Promise<void>;
}

/** The branch of a target that a preview is for. */
interface BranchState {
  readonly branch: TargetBranch;
  readonly head: Oid | undefined;
  readonly present: BranchFiles;
}

/** Computes what the publication of a revision commits to targets, as the delivery controller would, without writing. */
export class DeliveryPreviews {
  readonly #options: DeliveryExplainerOptions;
  readonly #wanted: WantedRevisions;

  constructor(options: DeliveryExplainerOptions) {
    this.#options = options;
    const built = new BuiltFolders(MAX_CACHED_BYTES, MAX_CACHED_BYTES);
    this.#wanted = new WantedRevisions(options.buildPackage, built);
  }

  /** NotFound for a target that does not exist. Without a name it covers every target that selects or delivers the package. */
  async preview(revision: PackageRevision, name: string | undefined, caller: Caller): Promise<RevisionPreview> {
    const all = name === undefined ? this.#concerned(revision) : [this.#target(revision.namespace, name)];
    const targets = all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).slice(0, MAX_TARGETS);
    const number = isPublished(revision) ? revision.revision : this.#nextRevision(revision);
    let patchBytes = MAX_PATCHES_BYTES;
    let listBytes = MAX_CHANGED_FILES_BYTES;
    // One comparison at a time, so that all of them together stay within the budget.
    const comparisons = new Mutex();
    const compare = ({ present, edited }: EditedFiles, signal: AbortSignal) =>
      comparisons.run(async () => {
        // The branch is read with the credentials of the target; callers may be users who cannot read Secrets.
        const hidden = await hiddenPaths(present);
        const changes = await fileChanges(present, edited, signal, { patchBytes, listBytes });
        for (const { patch, ...file } of changes.files) {
          patchBytes -= jsonBytes(patch);
          listBytes -= jsonBytes(file);
        }
        const files = changes.files.map((file) => (hidden.has(file.path) ? withoutText(file) : file));
        return { ...changes, files };
      });
    const previews = await mapLimited(targets, MAX_CONCURRENT_TARGETS, (target) =>
      this.#guarded(target, caller, async (signal) => {
        const outcome = await this.#compute(revision, number, target, signal);
        try {
          const { files, preview } = outcome;
          return { ...preview, ...(files === undefined ? { files: [] } : await compare(files, signal)) };
        } finally {
          await outcome.close?.();
        }
      }),
    );
    const omitted = all.length - targets.length;
    return { revision: number, targets: previews, ...(omitted > 0 ? { omittedTargets: omitted } : {}) };
  }

  /** Reports a target that the caller may not read, or that cannot be read in time, in its place. */
  async #guarded(
    target: Stored<DeliveryTarget>,
    { mayReadTarget, signal: request }: Caller,
    compute: (signal: AbortSignal) => Promise<TargetPreview>,
  ): Promise<TargetPreview> {
    const { name, namespace = '' } = target.metadata;
    const unreadable = (reason: string, message: string): TargetPreview => ({
      ...{ target: name, state: 'Unreadable', reason, message },
      files: [],
    });
    if (mayReadTarget !== undefined && !(await mayReadTarget({ namespace, name })))
      return unreadable('Forbidden', `a preview of target ${name} needs the right to get deliverytargets.sluice.dev`);
    const timeout = AbortSignal.timeout(this.#options.timeoutMs);
    const signal = request === undefined ? timeout : AbortSignal.any([timeout, request]);
    try {
      return await compute(signal);
    } catch (error) {
      request?.throwIfAborted();
      const { timeoutMs } = this.#options;
      if (timeout.aborted) return unreadable('Timeout', `no answer of the target within ${timeoutMs / 1000} s`);
      return unreadable(isSluiceError(error) ? error.code : 'Error', messageOf(error));
    }
  }

  #concerned(revision: PackageRevision): readonly Stored<DeliveryTarget>[] {
    const { repository: repositoryName, package: path } = revision.key;
    const repository = this.#repository(revision);
    return this.#options.targets().filter((target) => {
      if (target.metadata.namespace !== revision.namespace) return false;
      const isDelivered =
        this.#options.delivered.find(target, { repository: repositoryName, package: path }) !== undefined;
      return isDelivered || selects(target.spec.selector, revision, repository);
    });
  }

  #target(namespace: string, name: string): Stored<DeliveryTarget> {
    const found = this.#options
      .targets()
      .find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    if (found !== undefined) return found;
    throw new SluiceError('NotFound', `deliverytargets.sluice.dev ${JSON.stringify(name.slice(0, 253))} not found`);
  }

  #repository({ namespace, key }: PackageRevision) {
    return this.#options
      .repositories()
      .find(({ metadata }) => metadata.namespace === namespace && metadata.name === key.repository);
  }

  /** The number that the kernel gives to the next publication. */
  #nextRevision(revision: PackageRevision): number {
    const { index, layout } = this.#options.store.repositoryOf(revision);
    const { package: name } = revision.key;
    const highest = index.ofPackage(name).reduce((most, { revision: number }) => Math.max(most, number), 0);
    const conflictWith = (tag: string) => index.tagConflict(tag);
    return nextRevision(highest, { tagFor: (number) => tagRef(layout, name, `v${number}`), conflictWith }).revision;
  }

  async #compute(
    revision: PackageRevision,
    number: number,
    target: Stored<DeliveryTarget>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { git } = target.spec;
    const place = { target: target.metadata.name, repo: git.repo, branch: git.branch };
    const refused = (reason: string, message: string): Outcome => ({
      preview: { ...place, state: 'Refused', reason, message },
    });
    if (target.spec.suspend === true) return refused('Suspended', SUSPENDED);
    const { repositories: repositoryObjects, mirrors, mirrorOf } = this.#options;
    const registered = await packageRepositoryAt(git, repositoryObjects(), revision.namespace);
    if (registered !== undefined)
      return refused('TargetIsPackages', `branch ${git.branch} belongs to the packages of ${registered}`);
    const branch = await this.#open(target);
    try {
      const head = await mirrors.run(mirrorOf(target), () => branch.head(signal));
      if (head.oid === undefined && !head.isEmpty && git.createBranch !== true) {
        await branch.close();
        return refused('BranchMissing', `branch ${git.branch} does not exist in ${git.repo}`);
      }
      const present = await readBranch(branch.git, head.oid, normalizeDirectory(git.directory));
      const { result, edits } = await this.#edits(revision, number, target, { present, branch, head: head.oid });
      const commit = head.oid === undefined ? {} : { commit: head.oid };
      const files = edits.size === 0 ? {} : { files: await editedFiles(branch.git, present, edits) };
      return {
        preview: { ...place, ...commit, ...stateOf(revision, number, result, edits) },
        ...files,
        close: () => branch.close(),
      };
    } catch (error) {
      await branch.close();
      throw error;
    }
  }

  #open(target: Stored<DeliveryTarget>): Promise<TargetBranch> {
    const { client, dataFolder, network, mirrorOf } = this.#options;
    const { git } = target.spec;
    const credentials = credentialsOf(client, target, git.secretRef);
    return TargetBranch.open({
      ...{ url: git.repo, branch: git.branch, mirrorPath: mirrorOf(target), hostedFolder: hostedFolder(dataFolder) },
      ...(credentials === undefined ? {} : { credentials }),
      git: { network },
    });
  }

  /** The edits that follow from this package alone, and how the target treats it. */
  async #edits(
    revision: PackageRevision,
    number: number,
    target: Stored<DeliveryTarget>,
    { present, branch, head }: BranchState,
  ): Promise<{ readonly result: Desired; readonly edits: Map<string, Uint8Array | null> }> {
    const { store, repositories: repositoryObjects } = this.#options;
    const { namespace } = target.metadata;
    const repositories = store
      .repositories()
      .filter((repository) => repository.namespace === namespace && repository.index.mainHead !== undefined);
    const settings = settingsOf(target);
    const folders = [...present.owners.values()].filter((owner) => owner.target === settings.name);
    const readable = new Set(repositories.map(({ repository }) => repository));
    const unreadable = new Set(folders.flatMap(({ repository }) => (readable.has(repository) ? [] : repository)));
    const objects = repositoryObjects().filter(({ metadata }) => metadata.namespace === namespace);
    const key = packageKey(revision.key);
    const focus: PackageFocus = isPublished(revision) ? { key } : { key, draft: { row: revision, revision: number } };
    const known = this.#options.delivered.of(target);
    const memory = new WantedMemory();
    const { revisions } = await this.#wanted.of(target, known, repositories, objects, folders, { memory, focus });
    const tree = new DesiredTree(settings, present);
    const desired = (all: readonly DesiredRevision[], kept: ReadonlySet<string> = new Set()) =>
      runInSlices(tree.update(all, unreadable, kept));
    let result = await desired(revisions);
    if (result.missing.length > 0) {
      await this.#wanted.load(target, result.missing, repositories, memory);
      result = await desired(revisions);
    }
    if (target.spec.drift === 'Report' && head !== undefined && isPublished(revision)) {
      // Without a new publication, a changed folder stays.
      const differing = deliveredBefore(result.packages, folders, known);
      const kept = new Set(
        (await findDrift(branch.git, head, settings.name, differing)).map(({ of }) => packageKey(of)),
      );
      result = await desired(revisions, kept);
    }
    // The edits that are due without it are not its own: folders of other packages that the target is about to remove.
    const { repository, package: path } = revision.key;
    const others = revisions.filter((one) => packageKey(one) !== key);
    const kept = { repository, package: path, revision: number, sourceCommit: '', sourceTree: '', gates: [] };
    const hold = { ...kept, built: { refused: { reason: 'Unverified', message: '' } } } as const;
    const without = await desired([...others, hold]);
    const edits = new Map([...result.edits].filter(([file, data]) => !isSameEdit(data, without.edits.get(file))));
    return { result, edits };
  }
}

function stateOf(
  { key }: PackageRevision,
  number: number,
  { packages, refused, pruneBlocked }: Desired,
  edits: ReadonlyMap<string, unknown>,
): Pick<TargetPreview, 'state' | 'reason' | 'message'> {
  const own = packageKey(key);
  const refusal = refused.find((one) => packageKey(one) === own);
  if (refusal !== undefined) return { state: 'Refused', reason: refusal.reason, message: refusal.message };
  const chosen = packages.find((one) => packageKey(one) === own);
  const isOther = chosen !== undefined && chosen.revision !== number;
  const message = isOther ? { message: `the target delivers v${chosen.revision}` } : {};
  if (edits.size > 0) {
    const removed = { message: 'the target no longer selects the package and removes its folder' };
    return { state: 'Changes', ...(chosen === undefined ? removed : message) };
  }
  if (chosen !== undefined) return { state: 'Unchanged', ...message };
  if (pruneBlocked.length > 0)
    return {
      state: 'Refused',
      reason: 'PruneHeld',
      message: 'no package would remain; set spec.allowPrune: true on the target to remove the last one',
    };
  return { state: 'NotSelected', message: 'the selector of the target does not match the package' };
}

function isSameEdit(edit: Uint8Array | null, other: Uint8Array | null | undefined): boolean {
  if (edit === null || other === null) return edit === other;
  return other !== undefined && Buffer.compare(edit, other) === 0;
}

function withoutText({ truncated: _, ...file }: TargetPreview['files'][number]): TargetPreview['files'][number] {
  return { ...file, hidden: true, patch: '' };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
