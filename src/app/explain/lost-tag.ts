import { isSluiceError } from '../../foundation/sluice-error.ts';
import { localPath } from '../../git/open/open-location.ts';
import { parseCommitMessage } from '../../package/model/commit-message.ts';
import { packageName, revisionName } from '../../package/model/identity.ts';
import { packagePath } from '../../package/model/layout.ts';
import { hostedFolder } from '../../package/store/open-package-repository.ts';
import type { PackageRepository } from '../../package/store/package-repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/delivery-target.ts';
import type { Session } from '../session.ts';

interface Publication {
  /** Folder of the package in the repository. */
  readonly path: string;
  readonly revision: number;
  readonly commit: string;
}

/** How the tag of a published revision is brought back to its commit. */
export function repushText(
  { url }: Pick<PackageRepository, 'url'>,
  { path, revision, commit }: Publication,
  dataFolder: string,
): string {
  const tag = `${path}/v${revision}`;
  const local = localPath(url, hostedFolder(dataFolder));
  return local === undefined
    ? `its commit is ${commit}; in a clone that has it: git push ${url} ${commit}:refs/tags/${tag}`
    : `its commit is ${commit}; bring it back with: git --git-dir ${local} tag ${tag} ${commit}`;
}

/** What a target knows of a published revision whose tag is gone, by the name of the revision; undefined if none does. */
export async function lostTag(session: Session, name: string): Promise<string | undefined> {
  const targets = session.objects.of(deliveryTargetKind);
  for (const repository of session.store.repositories()) {
    const { git, layout, namespace } = repository;
    for (const { metadata, status } of targets) {
      if (metadata.namespace !== namespace) continue;
      for (const one of status?.packages ?? []) {
        const isOfName = one.repository === repository.repository && name.startsWith(`${packageName(one)}.`);
        if (!isOfName || one.commit === '' || hasRevision(repository, one.package, one.revision)) continue;
        const workspace = await workspaceOf(git, one.commit);
        if (workspace === undefined || revisionName({ ...one, workspace }) !== name) continue;
        const publication = { ...one, path: packagePath(layout, one.package) };
        return `it was published as v${one.revision} and delivered to ${metadata.name}, and its tag is gone from the repository; ${repushText(repository, publication, session.folder.path)}`;
      }
    }
  }
  return undefined;
}

function hasRevision({ index }: PackageRepository, path: string, revision: number): boolean {
  return [...index.ofPackage(path)].some((row) => row.revision === revision);
}

/** The workspace that an approval commit names; undefined if the commit is gone too. */
async function workspaceOf(git: PackageRepository['git'], commit: string): Promise<string | undefined> {
  try {
    const { message } = await git.readCommit(commit);
    return parseCommitMessage(message).annotations.at(-1)?.workspaceName;
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
