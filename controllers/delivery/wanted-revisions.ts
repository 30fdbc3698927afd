import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { Rollback } from '../../src/delivery/delivery-target.ts';
import type { DeliveryRefusal } from '../../src/delivery/refusal.ts';
import { type BuildPackage, packageBuilder } from '../../src/delivery/render/build-package.ts';
import type { RenderMode } from '../../src/delivery/render/render-mode.ts';
import { type PackageRefusal, packageKey } from '../../src/delivery/selection/select-revisions.ts';
import type { DesiredRevision } from '../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import { mapLimited } from '../../src/foundation/concurrency/map-limited.ts';
import { isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { type BuildResult, BuiltFolders } from './branch/built-folders.ts';
import { ChosenRevision } from './chosen-revision.ts';
import { type Choice, type SelectedPackage, SelectedPackages } from './selected-packages.ts';

export interface WantedContent {
  /** The content of the branch. Blocked packages are included as refused, so that their folders stay. */
  readonly revisions: readonly DesiredRevision[];
  /** Those of `revisions` that are delivered, by package. */
  readonly chosen: ReadonlyMap<string, DesiredRevision>;
  /** Rollbacks of the status that publications have ended. */
  readonly endedRollbacks: readonly Rollback[];
}

/** Limits the contents that are built to one package; the folders of the others stay as they are. */
export interface PackageFocus {
  /** `packageKey` of the package. */
  readonly key: string;
  /** A draft or proposal that counts as published under this number. */
  readonly draft?: { readonly row: PackageRevision; readonly revision: number };
}

interface WantedPackage {
  /** What it was made from. */
  readonly from: Choice | PackageRefusal;
  readonly revision: DesiredRevision;
  /** False for a placeholder that keeps the folder. */
  readonly isChosen: boolean;
  /** True if another attempt to build it may succeed. */
  readonly isTemporary: boolean;
}

/** What is kept of a target between reconciliations: an unchanged package is the same object in each of them. It may be dropped at any time. */
export class WantedMemory {
  readonly selected = new SelectedPackages();
  readonly wanted = new Map<SelectedPackage, WantedPackage>();
  readonly chosen = new Map<string, DesiredRevision>();
  /** Packages to be built again. */
  readonly temporary = new Set<SelectedPackage>();
  /** Manifests that are held beside the cache, while a delivery runs. */
  readonly held = new Map<DesiredRevision, BuildResult['outcome']>();

  /** Leaves the manifests to the cache. */
  release(): void {
    this.held.clear();
  }
}

/** Packages that are built at once: reading one from Git waits for several round trips. */
const MAX_BUILDS = 8;

/** The revisions that a target selects, with their manifests. Manifests depend on a tree alone and are built once. */
export class WantedRevisions {
  readonly #built: BuiltFolders;
  readonly #buildPackage: BuildPackage;

  constructor(buildPackage: BuildPackage = packageBuilder({}), built = new BuiltFolders()) {
    this.#buildPackage = buildPackage;
    this.#built = built;
  }

  /**
   * `folders` are those that the target wrote earlier, `known` the packages that are recorded as delivered; `memory` is that of the
   * target.
   */
  async of(
    target: DeliveryTarget,
    known: readonly DeliveredPackage[],
    repositories: readonly PackageRepository[],
    objects: readonly Repository[],
    folders: Iterable<FolderOwner>,
    { memory = new WantedMemory(), focus }: { readonly memory?: WantedMemory; readonly focus?: PackageFocus } = {},
  ): Promise<WantedContent> {
    const { selected, wanted, chosen, temporary } = memory;
    const evaluated = await selected.update({ target, known, repositories, objects, folders, draft: focus?.draft });
    for (const one of wanted.keys()) if (one.isDropped) forget(memory, one);
    const changed = new Set(temporary);
    for (const one of evaluated) if (wanted.get(one)?.from !== (one.chosen ?? one.blocked)) changed.add(one);
    temporary.clear();
    await mapLimited([...changed], MAX_BUILDS, async (one) => {
      const next = await this.#wantedOf(target, one, memory, focus);
      forget(memory, one);
      if (next === undefined) return;
      wanted.set(one, next);
      if (next.isChosen) chosen.set(one.key, next.revision);
      if (next.isTemporary) temporary.add(one);
    });
    const revisions = Array.from(wanted.values(), ({ revision }) => revision);
    return { revisions, chosen, endedRollbacks: selected.endedRollbacks(target) };
  }

  /** Loads the manifests of these revisions, which stay in memory until `memory` releases them. */
  async load(
    { spec }: Pick<DeliveryTarget, 'spec'>,
    missing: readonly DesiredRevision[],
    repositories: readonly PackageRepository[],
    memory: WantedMemory,
  ): Promise<void> {
    await mapLimited(missing, MAX_BUILDS, async (revision) => {
      const repository = repositories.find((one) => one.repository === revision.repository);
      const row = repository?.index.ofPackage(revision.package).find((one) => one.commit === revision.sourceCommit);
      // Deleted meanwhile, which wakes the controller again.
      if (repository === undefined || row === undefined) {
        const name = `${packageKey(revision)} v${revision.revision}`;
        throw new SluiceError('Conflict', `${name} changed during its delivery; the delivery is retried`);
      }
      const { outcome } = await this.#build(row, treeOf(row), repository, spec.render);
      memory.held.set(revision, outcome);
    });
  }

  async #wantedOf(
    { spec }: DeliveryTarget,
    { key, repository, chosen, blocked }: SelectedPackage,
    { held }: WantedMemory,
    focus: PackageFocus | undefined,
  ): Promise<WantedPackage | undefined> {
    const placeholder = { isChosen: false, isTemporary: false };
    if (blocked !== undefined) return { from: blocked, revision: toHold(blocked), ...placeholder };
    if (chosen === undefined) return undefined;
    if (focus !== undefined && key !== focus.key)
      return { from: chosen, revision: toHold({ ...chosen, ...NOT_IN_FOCUS }), ...placeholder };
    const { row } = chosen;
    const tree = treeOf(row);
    const cacheKey = builtKey(tree, row, spec.render);
    const { outcome, content } = this.#built.get(cacheKey) ?? (await this.#build(row, tree, repository, spec.render));
    const refused = spec.allowOutOfBand
      ? undefined
      : refuseChanged(row, publishedRecordOf(row.tip.facts)?.content, content);
    const kept = refused === undefined ? outcome : { refused };
    const isRefused = kept.manifests === undefined;
    // A refusal is small; manifests are left to the cache after the delivery.
    const lookUp = isRefused ? always(kept) : this.#lookup(cacheKey, held);
    const revision = new ChosenRevision(chosen, repository, tree, lookUp);
    if (!isRefused) held.set(revision, kept);
    return { from: chosen, revision, isChosen: true, isTemporary: outcome.isTemporary === true };
  }

  /** In a function of its own, which holds no manifests. */
  #lookup(cacheKey: string, held: WantedMemory['held']) {
    return (revision: DesiredRevision) => held.get(revision) ?? this.#built.get(cacheKey)?.outcome;
  }

  async #build(
    row: PackageRevision,
    tree: Oid,
    repository: PackageRepository,
    render: RenderMode | undefined,
  ): Promise<BuildResult> {
    let built: BuildResult;
    try {
      const { files, content } = await repository.content(row);
      built = {
        outcome: await this.#buildPackage({ files, package: row.key.package, namespace: row.namespace }, render),
        content,
      };
    } catch (error) {
      // A package that is too large is refused alone; any other error may be temporary.
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
      built = { outcome: { refused: { reason: 'TooLarge', message: error.message } }, content: undefined };
    }
    if (built.outcome.isTemporary !== true) this.#built.put(builtKey(tree, row, render), built);
    return built;
  }
}

function forget({ wanted, chosen, held, temporary }: WantedMemory, one: SelectedPackage): void {
  const known = wanted.get(one);
  if (known === undefined) return;
  wanted.delete(one);
  temporary.delete(one);
  held.delete(known.revision);
  // Another package object may have taken its name.
  if (chosen.get(one.key) === known.revision) chosen.delete(one.key);
}

/** In a function of its own too, since closures of one function hold all that one of them uses. */
function always<Value>(value: Value): () => Value {
  return () => value;
}

function treeOf({ tip, commit }: PackageRevision): Oid {
  return tip.tree ?? commit;
}

/**
 * Refuses revisions whose content differs from the approved one. A statement contains the tree, which the index compares; this check
 * is for approvals without a statement that an operator adopted: the tag was adopted, and its commit may have other content than the
 * approval.
 */
function refuseChanged(
  row: PackageRevision,
  approved: string | undefined,
  content: string | undefined,
): DeliveryRefusal | undefined {
  if (approved === undefined || content === undefined || approved === content) return undefined;
  return { reason: 'OutOfBand', message: `the content of ${row.name} is not the content that was approved` };
}

/** What a program renders depends on the name of the package too. */
function builtKey(tree: Oid, { key }: PackageRevision, render: RenderMode | undefined): string {
  return render === undefined || render === 'none' ? tree : JSON.stringify([tree, render, key.package]);
}

/** The reason is never shown. */
const NOT_IN_FOCUS = { reason: 'Unverified', message: '' } as const;

/** A placeholder that keeps the folder. */
function toHold({ repository, package: path, revision = 0, reason, message }: PackageRefusal): DesiredRevision {
  const nothing = { sourceCommit: '', sourceTree: '', gates: [] };
  return { repository, package: path, revision, ...nothing, built: { refused: { reason, message } } };
}
