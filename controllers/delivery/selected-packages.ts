import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import type { Rollback, TargetSettings } from '../../src/delivery/delivery-target.ts';
import {
  type DeliveredRevision,
  endedRollbacks,
  type PackageRefusal,
  type PublishedRevision,
  packageKey,
  selectRevision,
} from '../../src/delivery/selection/select-revisions.ts';
import type { FolderOwner } from '../../src/delivery/tree/kustomization.ts';
import { createPacer, inSlices } from '../../src/foundation/concurrency/in-slices.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { selects } from '../../src/package/store/policies/selected-packages.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { wasDeleted } from './deletion-proof.ts';
import { areLabelsKnown } from './known-labels.ts';

/** A published revision, or the draft that counts as one. */
export interface Choice extends PublishedRevision {
  readonly row: PackageRevision;
}

/** A package that a target may select, and its selected revision. */
export interface SelectedPackage {
  readonly key: string;
  readonly repository: PackageRepository;
  readonly package: string;
  /** A draft that counts as published. */
  draft: Choice | undefined;
  /** The folder of the package in the branch, and what is recorded as delivered; with the round that saw them last. */
  folder: FolderOwner | undefined;
  folderRound: number;
  recorded: DeliveredPackage | undefined;
  recordedRound: number;
  /** The same object as long as the selection is the same. */
  chosen: Choice | undefined;
  /** Reason why the folder stays as it is, also the same object. */
  blocked: PackageRefusal | undefined;
  /** True once nothing is left of it, or everything was forgotten. */
  isDropped: boolean;
}

export interface SelectionInput {
  readonly target: Pick<DeliveryTarget, 'spec' | 'status'>;
  readonly repositories: readonly PackageRepository[];
  readonly objects: readonly Repository[];
  /** The folders that the target wrote earlier. */
  readonly folders: Iterable<FolderOwner>;
  /** The packages that are recorded as delivered. */
  readonly known: readonly DeliveredPackage[];
  /** A draft or proposal that counts as published under this number. */
  readonly draft?: { readonly row: PackageRevision; readonly revision: number } | undefined;
}

interface KnownRepository {
  readonly repository: PackageRepository;
  readonly packages: Map<string, SelectedPackage>;
  /** By the folder of the package in its repository. */
  readonly byPath: Map<string, SelectedPackage>;
  /** Version of the index that was evaluated; undefined before the first time. */
  indexVersion: number | undefined;
  /** Version of the marks that the labels were judged with. */
  version: number;
}

/**
 * The packages that one target may select: see `selectRevisions`. An update evaluates the packages with other rows in the index, another
 * folder or another record than before. Rows are left to the index, which a repository has once for all targets: it names the packages
 * that changed.
 */
export class SelectedPackages {
  #settings: string | undefined;
  #rollbacks: readonly Rollback[] | undefined;
  #round = 0;
  readonly #repositories = new Map<string, KnownRepository>();
  /** The packages of folders and records, which mostly are the same objects in the next round. */
  readonly #byObject = new WeakMap<object, SelectedPackage>();
  readonly #stale = new Set<SelectedPackage>();
  /** Packages whose delivered revision is missing: whether it was deleted is not in the index alone. */
  readonly #lost = new Set<SelectedPackage>();

  /** Packages in memory. */
  get size(): number {
    let size = 0;
    for (const { packages } of this.#repositories.values()) size += packages.size;
    return size;
  }

  /** Returns the packages that were evaluated. */
  async update(input: SelectionInput): Promise<ReadonlySet<SelectedPackage>> {
    this.#round += 1;
    const labelsOf = new Map(input.objects.map(({ metadata }) => [metadata.name, metadata.labels]));
    const { spec, status } = input.target;
    const { selector, pins, allowOutOfBand, render } = spec;
    const names = input.repositories.map(({ repository }) => [repository, labelsOf.get(repository)]);
    this.#begin(JSON.stringify([selector, pins, allowOutOfBand, render, names]), input.repositories);
    const objectOf = new Map(input.objects.map((object) => [object.metadata.name, object]));
    const { packageSelector, ...nameSelector } = selector;
    const mayHold = (repository: string, path: string) =>
      selects(nameSelector, { key: { repository, package: path, workspace: '' } }, objectOf.get(repository));
    for (const known of this.#repositories.values()) await this.#followIndex(known, mayHold);
    if (input.draft !== undefined) this.#addDraft(input.draft, mayHold);
    this.#followDelivered(input.folders, input.known, mayHold);
    this.#followRollbacks(status?.rollbacks);
    if (packageSelector !== undefined) this.#followMarks();
    const settings = { ...spec, ...(status?.rollbacks === undefined ? {} : { rollbacks: status.rollbacks }) };
    const isSelected = ({ row }: Choice, repository: PackageRepository) => {
      const isKnown = packageSelector === undefined || row === input.draft?.row || areLabelsKnown(row, repository);
      return isKnown ? selects(selector, row, objectOf.get(row.key.repository)) : undefined;
    };
    const evaluated = new Set([...this.#stale, ...this.#lost]);
    const pause = createPacer();
    for (const one of evaluated) {
      const turn = pause();
      if (turn !== undefined) await turn;
      await this.#select(one, settings, isSelected);
      this.#stale.delete(one);
    }
    return evaluated;
  }

  /** Rollbacks of the status that publications have ended. */
  endedRollbacks({ spec, status }: Pick<DeliveryTarget, 'spec' | 'status'>): readonly Rollback[] {
    const settings = { ...spec, ...(status?.rollbacks === undefined ? {} : { rollbacks: status.rollbacks }) };
    return endedRollbacks(settings, (name) => {
      const known = this.#repositories.get(name.repository);
      if (known === undefined) return [{ ...name, revision: 0 }];
      const of = known.packages.get(name.package);
      return of === undefined ? [] : choicesOf(of);
    });
  }

  /** Forgets everything if the settings or the repositories are others than before. */
  #begin(settings: string, repositories: readonly PackageRepository[]): void {
    const isSame =
      settings === this.#settings &&
      repositories.every((one) => this.#repositories.get(one.repository)?.repository === one);
    if (isSame) return;
    this.#settings = settings;
    for (const { packages } of this.#repositories.values()) for (const one of packages.values()) one.isDropped = true;
    this.#repositories.clear();
    this.#stale.clear();
    this.#lost.clear();
    for (const repository of repositories) {
      const { version } = repository.trust.raisedSince(Number.MAX_SAFE_INTEGER);
      const known = { repository, packages: new Map(), byPath: new Map(), indexVersion: undefined, version };
      this.#repositories.set(repository.repository, known);
    }
  }

  /** Notes the packages with other rows than before. */
  async #followIndex(known: KnownRepository, mayHold: (repository: string, path: string) => boolean): Promise<void> {
    const { repository, packages: there } = known;
    // Before the rows are read: a change in between is in the next update again.
    const { version, packages } = repository.index.changedSince(known.indexVersion);
    for (const of of packages === undefined ? there.values() : []) this.#stale.add(of);
    const rows = packages === undefined ? repository.index.all() : rowsOf(repository, packages);
    await inSlices(rows, (row) => {
      if (!isCandidate(row)) return;
      const of = this.#packageOf(row.key.repository, row.key.package, mayHold);
      if (of !== undefined) known.byPath.set(row.path, of);
    });
    for (const path of packages ?? []) {
      const of = there.get(path);
      if (of !== undefined) this.#stale.add(of);
    }
    known.indexVersion = version;
  }

  #addDraft(
    { row, revision }: NonNullable<SelectionInput['draft']>,
    mayHold: (repository: string, path: string) => boolean,
  ): void {
    const of = this.#packageOf(row.key.repository, row.key.package, mayHold);
    if (of === undefined) return;
    of.draft = { ...choiceOf(row), revision };
    this.#repositories.get(row.key.repository)?.byPath.set(row.path, of);
    this.#stale.add(of);
  }

  /** Undefined for a package that the target cannot select by its name, or whose repository cannot be read. */
  #packageOf(
    name: string,
    path: string,
    mayHold: (repository: string, path: string) => boolean,
  ): SelectedPackage | undefined {
    const known = this.#repositories.get(name);
    const before = known?.packages.get(path);
    if (known === undefined || before !== undefined || !mayHold(name, path)) return before;
    const made: SelectedPackage = {
      ...{ key: packageKey({ repository: name, package: path }), repository: known.repository, package: path },
      ...{ draft: undefined, folder: undefined, folderRound: 0, recorded: undefined, recordedRound: 0 },
      ...{ chosen: undefined, blocked: undefined, isDropped: false },
    };
    known.packages.set(path, made);
    this.#stale.add(made);
    return made;
  }

  #packageOfObject(
    one: { readonly repository: string; readonly package: string },
    mayHold: (repository: string, path: string) => boolean,
  ): SelectedPackage | undefined {
    const known = this.#byObject.get(one);
    if (known?.isDropped === false) return known;
    const of = this.#packageOf(one.repository, one.package, mayHold);
    if (of !== undefined) this.#byObject.set(one, of);
    return of;
  }

  #followDelivered(
    folders: Iterable<FolderOwner>,
    recorded: readonly DeliveredPackage[],
    mayHold: (repository: string, path: string) => boolean,
  ): void {
    for (const folder of folders) {
      const of = this.#packageOfObject(folder, mayHold);
      if (of === undefined) continue;
      if (of.folder === undefined || of.folder.revision !== folder.revision) this.#stale.add(of);
      of.folder = folder;
      of.folderRound = this.#round;
    }
    for (const one of recorded) {
      const of = this.#packageOfObject(one, mayHold);
      if (of === undefined) continue;
      if (of.recorded?.revision !== one.revision || of.recorded.commit !== one.commit) this.#stale.add(of);
      of.recorded = one;
      of.recordedRound = this.#round;
    }
    for (const { packages } of this.#repositories.values())
      for (const of of packages.values()) {
        if (of.folder !== undefined && of.folderRound !== this.#round) {
          of.folder = undefined;
          this.#stale.add(of);
        }
        if (of.recorded === undefined || of.recordedRound === this.#round) continue;
        of.recorded = undefined;
        this.#stale.add(of);
      }
  }

  #followRollbacks(rollbacks: readonly Rollback[] | undefined): void {
    if (sameValue(rollbacks, this.#rollbacks)) return;
    for (const one of [...(rollbacks ?? []), ...(this.#rollbacks ?? [])]) {
      const of = this.#repositories.get(one.repository)?.packages.get(one.package);
      if (of !== undefined) this.#stale.add(of);
    }
    this.#rollbacks = rollbacks;
  }

  /** Whether labels are known depends on marks in the ledger too. */
  #followMarks(): void {
    for (const known of this.#repositories.values()) {
      const { version, scopes } = known.repository.trust.raisedSince(known.version);
      known.version = version;
      for (const of of scopes === undefined ? known.packages.values() : []) this.#stale.add(of);
      for (const scope of scopes ?? []) {
        const of = known.byPath.get(scope.package);
        if (of !== undefined) this.#stale.add(of);
      }
    }
  }

  async #select(
    of: SelectedPackage,
    settings: Pick<TargetSettings, 'pins' | 'rollbacks' | 'allowOutOfBand'>,
    isSelected: (choice: Choice, repository: PackageRepository) => boolean | undefined,
  ): Promise<void> {
    const { repository, folder, recorded } = of;
    const choices = choicesOf(of);
    const delivered = deliveredBefore(folder, recorded);
    const missing = missingRevision(of, choices, delivered);
    if (missing === undefined) this.#lost.delete(of);
    else this.#lost.add(of);
    const isDeleted = missing !== undefined && (await wasDeletedFrom(of, missing));
    const selection = selectRevision(settings, choices, delivered, {
      isSelected: (choice) => isSelected(choice, repository),
      isDeleted: () => isDeleted,
    });
    of.chosen = selection !== undefined && 'revision' in selection ? selection.revision : undefined;
    const blocked = selection !== undefined && 'refused' in selection ? selection.refused : undefined;
    if (!sameValue(blocked, of.blocked)) of.blocked = blocked;
    if (choices.length > 0 || folder !== undefined || recorded !== undefined) return;
    this.#repositories.get(repository.repository)?.packages.delete(of.package);
    of.isDropped = true;
    this.#lost.delete(of);
  }
}

/** The revision in the branch, or the recorded one where a user removed the folder. */
function deliveredBefore(
  folder: FolderOwner | undefined,
  recorded: DeliveredPackage | undefined,
): DeliveredRevision | undefined {
  const from = folder ?? recorded;
  if (from === undefined) return undefined;
  const { repository, package: path, revision } = from;
  const common = { repository, package: path, hasFolder: folder !== undefined };
  if (revision === undefined) return common;
  const reported = recorded?.revision ?? 0;
  return folder !== undefined && reported > revision ? { ...common, revision, reported } : { ...common, revision };
}

/** The highest revision that was delivered, as far as is known. */
function highestOf({ revision, reported = 0 }: DeliveredRevision): number | undefined {
  return revision === undefined ? undefined : Math.max(revision, reported);
}

/** The delivered revision of a package if it is missing. */
function missingRevision(
  { repository, package: path }: SelectedPackage,
  choices: readonly Choice[],
  delivered: DeliveredRevision | undefined,
): number | undefined {
  const number = delivered && highestOf(delivered);
  if (number === undefined || choices.some((choice) => choice.revision === number)) return undefined;
  return repository.index.ofPackage(path).some((row) => row.revision === number) ? undefined : number;
}

/** True if a delivered revision was deleted through Sluice. */
function wasDeletedFrom({ repository, package: path, recorded }: SelectedPackage, revision: number): Promise<boolean> {
  const commit: Oid | undefined =
    recorded?.revision === revision && recorded.commit !== '' ? recorded.commit : undefined;
  return wasDeleted(repository, { package: path, revision }, commit);
}

function* rowsOf({ index }: PackageRepository, packages: readonly string[]): Generator<PackageRevision> {
  for (const path of packages) yield* index.ofPackage(path);
}

function isCandidate(row: PackageRevision): boolean {
  return isPublished(row) && row.revision > 0;
}

/** What a target can choose from, the highest first. The present choice stays the same object as long as its row is the same. */
function choicesOf({ repository, package: path, chosen, draft }: SelectedPackage): readonly Choice[] {
  const published = repository.index
    .ofPackage(path)
    .filter(isCandidate)
    .map((row) => (chosen?.row === row ? chosen : choiceOf(row)));
  const choices = draft === undefined ? published : [...published.filter(({ row }) => row !== draft.row), draft];
  return choices.sort((a, b) => b.revision - a.revision);
}

function choiceOf(row: PackageRevision): Choice {
  const { key, revision, outOfBand } = row;
  const common = { repository: key.repository, package: key.package, revision, commit: row.commit, row };
  return outOfBand === undefined ? common : { ...common, outOfBand };
}
