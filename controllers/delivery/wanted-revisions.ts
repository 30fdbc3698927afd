import { gatesOf } from '../../kptfile-schema/index.ts';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { Rollback } from '../../src/delivery/delivery-target.ts';
import type { DeliveryRefusal } from '../../src/delivery/refusal.ts';
import { type BuildPackage, packageBuilder } from '../../src/delivery/render/build-package.ts';
import type { RenderMode } from '../../src/delivery/render/render-mode.ts';
import {
  type DeliveredRevision,
  endedRollbacks,
  type PackageRefusal,
  type PublishedRevision,
  packageKey,
  selectInSteps,
} from '../../src/delivery/selection/select-revisions.ts';
import type { DesiredRevision } from '../../src/delivery/tree/desired.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import type { GateVerdict } from '../../src/delivery/tree/trailers.ts';
import { inSlices } from '../../src/foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { runInSlices } from '../../src/package/index/steps.ts';
import type { RevisionKey } from '../../src/package/model/identity/identity.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import { verdictsByType } from '../../src/package/model/record/record.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { selects } from '../../src/package/store/policy-objects.ts';
import { DELETED } from '../../src/package/trust/ledger/trust-ledger.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery-target.ts';
import { type BuildResult, BuiltFolders } from './built-folders.ts';
import { wasDeleted } from './deletion-proof.ts';

export interface WantedContent {
  /** The content of the branch. Blocked packages are included as refused, so that their folders stay. */
  readonly revisions: readonly DesiredRevision[];
  /** Packages whose folders stay as they are, and why. */
  readonly blocked: readonly PackageRefusal[];
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

interface Choice extends PublishedRevision {
  readonly row: PackageRevision;
}

/** Facts of a row that require its commit message, cached because each reconciliation needs them. */
interface RowFacts {
  readonly tree: Oid;
  /** Digest of the approved content, if the approval contains it. */
  readonly approved: string | undefined;
}

/** The revisions that a target selects, with their manifests. Manifests depend on a tree alone and are built once. */
export class WantedRevisions {
  readonly #built: BuiltFolders;
  readonly #facts = new WeakMap<PackageRevision, RowFacts>();

  readonly #buildPackage: BuildPackage;

  constructor(buildPackage: BuildPackage = packageBuilder({}), built = new BuiltFolders()) {
    this.#buildPackage = buildPackage;
    this.#built = built;
  }

  /** `folders` are those that the target wrote earlier, `known` the packages that are recorded as delivered. */
  async of(
    { spec, status }: DeliveryTarget,
    known: readonly DeliveredPackage[],
    repositories: readonly PackageRepository[],
    objects: readonly Repository[],
    folders: readonly FolderOwner[],
    focus?: PackageFocus,
  ): Promise<WantedContent> {
    const byName = new Map(repositories.map((repository) => [repository.repository, repository]));
    const objectOf = new Map(objects.map((object) => [object.metadata.name, object]));
    const { packageSelector, ...nameSelector } = spec.selector;
    const mayHold = (key: RevisionKey) => selects(nameSelector, { key }, objectOf.get(key.repository));
    const isSelected = ({ row }: Choice) => {
      if (packageSelector === undefined) return true;
      const repository = byName.get(row.key.repository);
      if (row === focus?.draft?.row) return selects(spec.selector, row, objectOf.get(row.key.repository));
      if (repository === undefined || !areLabelsKnown(row, repository)) return undefined;
      return selects(spec.selector, row, objectOf.get(row.key.repository));
    };
    const candidates: Choice[] = [];
    for (const { index } of repositories)
      await inSlices(index.all(), (row) => {
        if (isPublished(row) && row.revision > 0 && mayHold(row.key)) candidates.push(choiceOf(row));
      });
    const draft = focus?.draft;
    if (draft !== undefined && mayHold(draft.row.key))
      candidates.push({ ...choiceOf(draft.row), revision: draft.revision });
    const delivered = deliveredBefore(folders, known);
    for (const [key, { repository, package: path }] of delivered) {
      const isKnown = byName.has(repository) && mayHold({ repository, package: path, workspace: '' });
      if (!isKnown) delivered.delete(key);
    }
    const deleted = await deletedOf(delivered, byName, known);
    const settings = { ...spec, ...(status?.rollbacks === undefined ? {} : { rollbacks: status.rollbacks }) };
    const facts = { delivered, isSelected, isDeleted: (one: DeliveredRevision) => deleted.has(packageKey(one)) };
    const { chosen, blocked } = await runInSlices(selectInSteps(settings, candidates, facts));
    const ended = endedRollbacks(settings, (name) =>
      byName.has(name.repository)
        ? candidates.filter((one) => packageKey(one) === packageKey(name))
        : [{ ...name, revision: 0 }],
    );
    const revisions: DesiredRevision[] = [];
    const byPackage = new Map<string, DesiredRevision>();
    for (const choice of chosen) {
      const repository = byName.get(choice.repository);
      if (repository === undefined) continue;
      if (focus !== undefined && packageKey(choice) !== focus.key) {
        revisions.push(toHold({ ...choice, ...NOT_IN_FOCUS }));
        continue;
      }
      const { tree, approved } = this.#factsOf(choice.row);
      const known = this.#built.get(builtKey(tree, choice.row, spec.render));
      const { outcome, content } = known ?? (await this.#build(choice.row, tree, repository, spec.render));
      const refused = spec.allowOutOfBand ? undefined : refuseChanged(choice.row, approved, content);
      const revision = toDeliver(choice, repository, tree, refused === undefined ? outcome : { refused });
      revisions.push(revision);
      byPackage.set(packageKey(choice), revision);
    }
    for (const refused of blocked) revisions.push(toHold(refused));
    return { revisions, blocked, chosen: byPackage, endedRollbacks: ended };
  }

  /** The same with the contents of these revisions, which stay in memory as long as the caller references them. */
  async load(
    { spec }: Pick<DeliveryTarget, 'spec'>,
    wanted: WantedContent,
    missing: readonly DesiredRevision[],
    repositories: readonly PackageRepository[],
  ): Promise<WantedContent> {
    const loaded = new Map<DesiredRevision, DesiredRevision>();
    for (const revision of missing) {
      const repository = repositories.find((one) => one.repository === revision.repository);
      const row = repository?.index.ofPackage(revision.package).find((one) => one.commit === revision.sourceCommit);
      // Deleted meanwhile, which wakes the controller again.
      if (repository === undefined || row === undefined) {
        const name = `${packageKey(revision)} v${revision.revision}`;
        throw new SluiceError('Conflict', `${name} changed during its delivery; the delivery is retried`);
      }
      const { outcome } = await this.#build(row, this.#factsOf(row).tree, repository, spec.render);
      loaded.set(revision, { ...revision, built: outcome });
    }
    const next = (revision: DesiredRevision) => loaded.get(revision) ?? revision;
    return {
      ...wanted,
      revisions: wanted.revisions.map(next),
      chosen: new Map([...wanted.chosen].map(([key, revision]) => [key, next(revision)])),
    };
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

  #factsOf(row: PackageRevision): RowFacts {
    const known = this.#facts.get(row);
    if (known !== undefined) return known;
    const { tree = row.commit, facts } = row.tip;
    const made = { tree, approved: publishedRecordOf(facts)?.content };
    this.#facts.set(row, made);
    return made;
  }
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

/** False if labels that the revision has or had are in a record that does not count, or was removed. */
function areLabelsKnown(
  { path, key, record, recordDistrust, tip }: PackageRevision,
  { trust }: PackageRepository,
): boolean {
  if (recordDistrust !== undefined) return false;
  if (record !== undefined) return true;
  const scope = { package: path, workspace: key.workspace };
  const mark = trust.mark(scope);
  if (mark === undefined || mark.digest === DELETED) return true;
  // A publication makes earlier records obsolete. An adopted tag does not: a mark means that there was a record.
  const signed = tip.facts.statement;
  if (signed === undefined) return false;
  const { statement } = signed;
  // An operator can adopt a tag whose commit carries a statement about another revision.
  const isOwn =
    statement.repository === trust.repository && statement.package === path && statement.workspace === key.workspace;
  return isOwn && mark.sequence <= statement.sequence;
}

/** By package: the revision in the branch, or the recorded one where a user removed the folder. */
function deliveredBefore(
  folders: readonly FolderOwner[],
  packages: readonly DeliveredPackage[],
): Map<string, DeliveredRevision> {
  const delivered = new Map<string, DeliveredRevision>();
  for (const { repository, package: path, revision } of packages)
    delivered.set(packageKey({ repository, package: path }), { repository, package: path, revision, hasFolder: false });
  for (const { repository, package: path, revision } of folders) {
    const reported = delivered.get(packageKey({ repository, package: path }))?.revision ?? 0;
    const common = { repository, package: path, hasFolder: true };
    const known = revision === undefined ? common : { ...common, revision };
    delivered.set(packageKey(common), revision !== undefined && reported > revision ? { ...known, reported } : known);
  }
  return delivered;
}

/** Keys of the packages whose delivered revision was deleted through Sluice. */
async function deletedOf(
  delivered: ReadonlyMap<string, DeliveredRevision>,
  repositories: ReadonlyMap<string, PackageRepository>,
  packages: readonly DeliveredPackage[],
): Promise<Set<string>> {
  const commits = new Map(packages.map((one) => [`${packageKey(one)} ${one.revision}`, one.commit]));
  const deleted = new Set<string>();
  for (const [key, { repository: name, package: path, revision: present, reported = 0 }] of delivered) {
    const repository = repositories.get(name);
    if (repository === undefined || present === undefined) continue;
    const revision = Math.max(present, reported);
    if (repository.index.ofPackage(path).some((row) => row.revision === revision)) continue;
    const commit = commits.get(`${key} ${revision}`);
    if (await wasDeleted(repository, { package: path, revision }, commit === '' ? undefined : commit)) deleted.add(key);
  }
  return deleted;
}

function choiceOf(row: PackageRevision): Choice {
  const { key, revision, outOfBand } = row;
  const common = { repository: key.repository, package: key.package, revision, commit: row.commit, row };
  return outOfBand === undefined ? common : { ...common, outOfBand };
}

function toDeliver(
  { row, outOfBand, ...choice }: Choice,
  repository: PackageRepository,
  sourceTree: Oid,
  built: DesiredRevision['built'],
): DesiredRevision {
  return {
    ...choice,
    ...(outOfBand === undefined ? {} : { outOfBand: outOfBand.message }),
    ...{ sourceCommit: row.commit, sourceTree, built },
    // This is computed only for revisions that are committed.
    get gates() {
      return verdictsOf(row, repository);
    },
  };
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

/** The gates of the Kptfile and of policies, with their verdicts in the approval. */
function verdictsOf(row: PackageRevision, repository: PackageRepository): GateVerdict[] {
  const types = row.kptfile === undefined ? [] : gatesOf(row.kptfile);
  const required = repository.policyFor(row).requiredGates.map(({ conditionType }) => conditionType);
  const verdicts = verdictsByType(publishedRecordOf(row.tip.facts)?.verdicts ?? []);
  return [...new Set([...types, ...required])].map((type) => {
    const verdict = verdicts.get(type);
    return verdict === undefined ? { type, status: 'Unknown' } : { type, status: verdict.status, by: verdict.by };
  });
}
