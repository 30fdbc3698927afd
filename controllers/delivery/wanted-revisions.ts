import { gatesOf } from '../../kptfile-schema/index.ts';
import type { DesiredRevision } from '../../src/delivery/desired.ts';
import { type ManifestsOutcome, manifestsOf } from '../../src/delivery/manifests.ts';
import type { Refusal } from '../../src/delivery/refusal.ts';
import { type PackageRefusal, packageKey, selectRevisions } from '../../src/delivery/select-revisions.ts';
import type { GateVerdict } from '../../src/delivery/trailers.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import type { PackageRepository } from '../../src/package/package-repository.ts';
import { isPublished, type PackageRevision } from '../../src/package/package-revision.ts';
import { selects } from '../../src/package/policy-objects.ts';
import { verdictsByType } from '../../src/package/record.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/delivery-target.ts';
import type { Repository } from '../../src/resource/kinds/repository.ts';

export interface Wanted {
  /** What the target shall hold. Packages that have no revision to deliver are among them, refused, so that their folders stay. */
  readonly revisions: readonly DesiredRevision[];
  /** Revisions in whose place a lower one is delivered. */
  readonly refused: readonly PackageRefusal[];
  /** The rows of `revisions`, by package. */
  readonly rows: ReadonlyMap<string, PackageRevision>;
}

interface Choice {
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
  readonly outOfBand?: string;
  readonly row: PackageRevision;
}

/** Manifests are kept for as many versions of packages. */
const MAX_KEPT = 2000;

/** What a tree gives: its manifests, and its content digest if it could be read. */
interface Built {
  readonly outcome: ManifestsOutcome;
  readonly content: string | undefined;
}

/** The revisions that a target selects, with their manifests. Manifests depend on a tree alone and are built once. */
export class WantedRevisions {
  readonly #built = new Map<Oid, Built>();

  async of(
    { spec }: DeliveryTarget,
    repositories: readonly PackageRepository[],
    objects: readonly Repository[],
  ): Promise<Wanted> {
    const objectOf = new Map(objects.map((object) => [object.metadata.name, object]));
    const inSelector = ({ key: { repository, package: path } }: PackageRevision) =>
      (spec.selector.repositories?.includes(repository) ?? true) && (spec.selector.packages?.includes(path) ?? true);
    const isSelected = ({ row }: Choice) => selects(spec.selector, row, objectOf.get(row.key.repository));
    const candidates = repositories.flatMap(({ index }) =>
      Array.from(index.all())
        .filter((row) => isPublished(row) && row.revision > 0 && inSelector(row))
        .map(choiceOf),
    );
    const { chosen, refused } = selectRevisions(spec, candidates, isSelected);
    const byName = new Map(repositories.map((repository) => [repository.repository, repository]));
    const revisions: DesiredRevision[] = [];
    const rows = new Map<string, PackageRevision>();
    for (const choice of chosen) {
      rows.set(packageKey(choice), choice.row);
      const repository = byName.get(choice.repository);
      if (repository === undefined) continue;
      const { outcome, content } = await this.#build(choice.row, repository);
      const refused = spec.allowOutOfBand ? undefined : refuseChanged(choice.row, content);
      revisions.push(delivered(choice, repository, refused === undefined ? outcome : { refused }));
    }
    const instead: PackageRefusal[] = [];
    for (const refusal of refused) {
      const repository = byName.get(refusal.repository);
      const ofPackage = candidates.filter((candidate) => packageKey(candidate) === packageKey(refusal));
      const [highest] = ofPackage.sort((a, b) => b.revision - a.revision);
      if (rows.has(packageKey(refusal)) || highest === undefined || repository === undefined) instead.push(refusal);
      else revisions.push(delivered(highest, repository, { refused: refusal }));
    }
    return { revisions, refused: instead, rows };
  }

  async #build(row: PackageRevision, repository: PackageRepository): Promise<Built> {
    const { tree = row.commit } = row.tip;
    const known = this.#built.get(tree);
    if (known !== undefined) return known;
    let built: Built;
    try {
      const { files, content } = await repository.content(row);
      built = { outcome: manifestsOf(files), content };
    } catch (error) {
      // A package that is too large is one refused package; anything else may pass.
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
      built = { outcome: { refused: { reason: 'TooLarge', message: error.message } }, content: undefined };
    }
    this.#built.set(tree, built);
    for (const oldest of this.#built.keys()) {
      if (this.#built.size <= MAX_KEPT) break;
      this.#built.delete(oldest);
    }
    return built;
  }
}

/** An approval speaks for the content it was given for. A tag that was moved to another tree with a copied message is found here. */
function refuseChanged(row: PackageRevision, content: string | undefined): Refusal | undefined {
  const approved = row.tip.facts.record?.content;
  if (approved === undefined || content === undefined || approved === content) return undefined;
  return { reason: 'OutOfBand', message: `the content of ${row.name} is not the content that was approved` };
}

function choiceOf(row: PackageRevision): Choice {
  const { key, revision, outOfBand } = row;
  const common = { repository: key.repository, package: key.package, revision, row };
  return outOfBand === undefined ? common : { ...common, outOfBand: outOfBand.message };
}

function delivered(
  { row, ...choice }: Choice,
  repository: PackageRepository,
  built: ManifestsOutcome,
): DesiredRevision {
  const { commit, tip } = row;
  return { ...choice, sourceCommit: commit, sourceTree: tip.tree ?? '', gates: verdictsOf(row, repository), built };
}

/** The gates of the Kptfile and of policies, with what the approval says of them. */
function verdictsOf(row: PackageRevision, repository: PackageRepository): GateVerdict[] {
  const types = row.kptfile === undefined ? [] : gatesOf(row.kptfile);
  const required = repository.policyFor(row).requiredGates.map(({ conditionType }) => conditionType);
  const verdicts = verdictsByType(row.tip.facts.record?.verdicts ?? []);
  return [...new Set([...types, ...required])].map((type) => {
    const verdict = verdicts.get(type);
    return verdict === undefined ? { type, status: 'Unknown' } : { type, status: verdict.status, by: verdict.by };
  });
}
