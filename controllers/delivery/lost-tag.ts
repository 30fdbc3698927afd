import type { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { localPath } from '../../src/git/open/open-location.ts';
import type { Explainer } from '../../src/package/api/explain/explainer.ts';
import { packageName, revisionName } from '../../src/package/model/identity/identity.ts';
import { packagePath } from '../../src/package/model/identity/layout.ts';
import { parseCommitMessage } from '../../src/package/model/record/commit-message.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { hostedFolder } from '../../src/package/store/opening/open-package-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { markedPublications } from '../../src/package/trust/ledger/publication-mark.ts';
import type { DeliveryTarget } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/** The highest revision number that is searched in the ledger. */
const MAX_NUMBERS = 1000;

export interface LostTagOptions {
  readonly store: Pick<RevisionStore, 'repositories' | 'repositoryOf'>;
  readonly targets: () => readonly DeliveryTarget[];
  readonly delivered: DeliveredPackages;
  readonly dataFolder: string;
}

interface Publication {
  /** Folder of the package in the repository. */
  readonly path: string;
  readonly revision: number;
  readonly commit: string;
}

/** Returns the command that restores the tag of a published revision to its commit. */
export function repushText(repository: Pick<PackageRepository, 'url'>, publication: Publication, data: string): string {
  const { command, isLocal } = repush(repository, publication, data);
  return `its commit is ${publication.commit}; ${isLocal ? 'restore it with' : 'in a clone that has it'}: ${command}`;
}

function repush({ url }: Pick<PackageRepository, 'url'>, { path, revision, commit }: Publication, dataFolder: string) {
  const tag = `${path}/v${revision}`;
  const local = localPath(url, hostedFolder(dataFolder));
  return local === undefined
    ? { command: `git push ${url} ${commit}:refs/tags/${tag}`, isLocal: false }
    : { command: `git --git-dir ${local} tag ${tag} ${commit}`, isLocal: true };
}

/** Reports a publication whose tag is missing while a branch has the name of its revision. */
export function lostTagExplainer(options: LostTagOptions): Explainer {
  return {
    async explain({ evaluation: { revision } }) {
      const lost = await lostPublication(options, revision);
      return lost === undefined ? {} : { reasons: [lost.reason], next: [lost.command] };
    },
  };
}

/**
 * Finds the publication whose tag is missing while a draft or proposed branch of its workspace exists, which then has its name. The
 * ledger records which publication of a number counted.
 */
async function lostPublication(
  { store, dataFolder }: LostTagOptions,
  revision: PackageRevision,
): Promise<{ readonly reason: Reason; readonly command: string } | undefined> {
  if (revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed') return undefined;
  const repository = store.repositoryOf(revision);
  const { path, key, ref } = revision;
  for (const { revision: number, commit, isDeleted } of markedPublications(repository.trust, path)) {
    if (number > MAX_NUMBERS) return undefined;
    if (hasRevision(repository, key.package, number)) continue;
    if (isDeleted || (await workspaceOf(repository.git, commit)) !== key.workspace) continue;
    const publication = { path, revision: number, commit };
    const message = `it was published as v${number}, and its tag is missing in the repository while ${ref} is left; ${repushText(repository, publication, dataFolder)}`;
    return {
      reason: { reason: 'TagMissing', message },
      command: repush(repository, publication, dataFolder).command,
    };
  }
  return undefined;
}

/** The record of a target about a published revision whose tag is missing; undefined if no target has one. */
export async function lostTag(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { store, targets, delivered, dataFolder }: LostTagOptions,
): Promise<string | undefined> {
  for (const repository of store.repositories()) {
    if (repository.namespace !== namespace) continue;
    const { git, layout } = repository;
    for (const target of targets()) {
      const { metadata } = target;
      if (metadata.namespace !== namespace) continue;
      for (const one of delivered.of(target)) {
        const isOfName = one.repository === repository.repository && name.startsWith(`${packageName(one)}.`);
        if (!isOfName || one.commit === '' || hasRevision(repository, one.package, one.revision)) continue;
        const workspace = await workspaceOf(git, one.commit);
        if (workspace === undefined || revisionName({ ...one, workspace }) !== name) continue;
        const publication = { ...one, path: packagePath(layout, one.package) };
        return `it was published as v${one.revision} and delivered to ${metadata.name}, and its tag is missing in the repository; ${repushText(repository, publication, dataFolder)}`;
      }
    }
  }
  return undefined;
}

function hasRevision({ index }: PackageRepository, path: string, revision: number): boolean {
  return [...index.ofPackage(path)].some((row) => row.revision === revision);
}

/** Returns the workspace in an approval commit; undefined if the commit is missing too. */
async function workspaceOf(git: PackageRepository['git'], commit: string): Promise<string | undefined> {
  try {
    const { message } = await git.readCommit(commit);
    return parseCommitMessage(message).annotations.at(-1)?.workspaceName;
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
