import { SluiceError } from '../../../foundation/sluice-error.ts';
import { checkRevisionKey, type RevisionKey } from '../../model/identity/identity.ts';
import { deletionProposedRef, draftRef, proposedRef, tagRef } from '../../model/identity/layout.ts';
import type { NewRevision } from '../../upstream/revision-source.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';

/** The key of a new revision. Throws if there is no place for it. */
export function checkPlace(repo: RepositoryContext, wanted: NewRevision): RevisionKey {
  const key = { repository: repo.repository, package: wanted.package, workspace: wanted.workspace };
  checkRevisionKey(key);
  checkUnique(repo, key);
  if (wanted.source.type === 'init' && repo.index.ofPackage(key.package).length > 0) {
    throw new SluiceError(
      'AlreadyExists',
      `package "${key.package}" already exists in repository "${repo.repository}"`,
    );
  }
  if (wanted.source.type === 'clone' && repo.index.ofPackage(key.package).length > 0) {
    throw new SluiceError(
      'AlreadyExists',
      `\`clone\` cannot create a new revision for package "${key.package}" that already exists in repo "${repo.repository}"; make subsequent revisions using \`copy\``,
    );
  }
  checkNesting(repo, key);
  checkRefCollision(repo, key);
  return key;
}

function checkUnique(repo: RepositoryContext, key: RevisionKey): void {
  if (key.workspace === repo.layout.branch) {
    throw new SluiceError(
      'InvalidInput',
      `workspace name "${key.workspace}" belongs to the packages on the branch ${repo.layout.branch}; choose another one`,
    );
  }
  const taken = repo.index.ofPackage(key.package).find((other) => other.key.workspace === key.workspace);
  if (taken !== undefined) {
    throw new SluiceError(
      'AlreadyExists',
      `package revision workspaceNames must be unique; package revision with name ${key.package} in repo ${key.repository} with workspaceName ${key.workspace} already exists`,
    );
  }
}

/** Git keeps refs as files: `drafts/a/b` and `drafts/a/b/c` cannot both exist, which is the same as packages that are nested. */
function checkNesting(repo: RepositoryContext, key: RevisionKey): void {
  const other = repo.index.nestedWith(key.package);
  if (other === undefined) return;
  throw new SluiceError(
    'Refused',
    `packages cannot be nested: "${key.package}" would lie above or below the package "${other}", and their branches and tags cannot exist side by side in Git; choose another package name`,
  );
}

/** Branches and tags that are no revisions can conflict too, also with what the draft becomes later. */
function checkRefCollision(repo: RepositoryContext, key: RevisionKey): void {
  const { layout, index } = repo;
  const refs = [draftRef(layout, key), proposedRef(layout, key)];
  for (const later of [tagRef, deletionProposedRef]) refs.push(later(layout, key.package, 'v1'));
  for (const ref of refs) {
    for (let slash = ref.lastIndexOf('/'); slash > 'refs/heads'.length; slash = ref.lastIndexOf('/', slash - 1)) {
      const above = ref.slice(0, slash);
      if (index.ref(above) === undefined) continue;
      throw new SluiceError('Refused', `${ref} cannot exist beside ${above}; remove that one or choose another name`);
    }
  }
}
