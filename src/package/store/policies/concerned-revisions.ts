import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import { keyOf, keyText, type Stored } from '../../../resource/object/object.ts';
import type { PackageRevision, PolicySubject } from '../../model/revision/package-revision.ts';
import { type SelectedRevision, type Selecting, selects, selectsToRestrict } from './selected-packages.ts';

/** Policies that changed, as they were and as they are; undefined: any revision of the namespace may be concerned. */
export interface PolicyChange {
  readonly namespace: string;
  readonly policies: readonly DeepReadonly<PackagePolicy>[] | undefined;
}

/** Whether a change concerns a revision, by the id of its repository; no revision of other repositories is concerned. */
export type ConcernedRevisions = ReadonlyMap<string, (revision: PackageRevision) => boolean>;

/**
 * A change of policies, of a Freeze or of the hold of plans. The last two concern proposed revisions alone; without a namespace, those of all, and
 * without policies, all of them.
 */
export type RuleChange =
  | PolicyChange
  | {
      readonly namespace: string | undefined;
      /** Plans, in the form of policies. */
      readonly policies: readonly Selecting[] | undefined;
      readonly onlyProposed: true;
    };

export interface RegisteredPackages {
  /** The Repositories of the namespace of the change, or all. */
  readonly repositories: readonly Stored<Repository>[];
  /** Repositories of other namespaces with the same packages, where policies and freezes of this namespace count too. */
  sharing(repository: Stored<Repository>): readonly Stored<Repository>[];
}

/** The revisions that a changed policy or plan selects or selected. Sets of variants are not compared: one may have just made the revision. */
export function concernedRevisions(
  change: RuleChange,
  { repositories, sharing }: RegisteredPackages,
): ConcernedRevisions {
  const concerned = new Map<string, (revision: PackageRevision) => boolean>();
  const onlyProposed = 'onlyProposed' in change;
  for (const repository of repositories) {
    const selectors = change.policies
      ?.map(({ spec: { selector } }) => selector)
      .filter(({ packages: _packages, packageSelector: _labels, ...ofRepository }) =>
        selects(
          ofRepository,
          { key: { repository: repository.metadata.name, package: '', workspace: '' } },
          repository,
        ),
      );
    if (selectors?.length === 0) continue;
    const isSelected = (revision: SelectedRevision | undefined) =>
      revision !== undefined &&
      (selectors?.some((selector) => selectsToRestrict(selector, revision, repository)) ?? true);
    const add = (id: string, isConcerned: (revision: PackageRevision) => boolean) => {
      const before = concerned.get(id);
      concerned.set(id, (revision) => {
        if (onlyProposed && revision.lifecycle !== 'Proposed') return false;
        return before?.(revision) === true || isConcerned(revision);
      });
    };
    add(keyText(keyOf(repository)), isSelected);
    for (const other of sharing(repository))
      add(keyText(keyOf(other)), (revision) => isSelected(inFolderOf(repository, revision)));
  }
  return concerned;
}

/** Returns a revision as in a Repository of another namespace; undefined if the folder of that one does not contain the package. */
export function inFolderOf(
  { metadata, spec }: Stored<Repository>,
  revision: PolicySubject,
): SelectedRevision | undefined {
  const directory = spec.git?.directory ?? '/';
  const prefix = directory === '/' ? '' : `${directory}/`;
  if (!revision.path.startsWith(prefix)) return undefined;
  const key = { ...revision.key, repository: metadata.name, package: revision.path.slice(prefix.length) };
  return {
    key,
    record: revision.record,
    // Computed on first access.
    get kptfile() {
      return revision.kptfile;
    },
  };
}
