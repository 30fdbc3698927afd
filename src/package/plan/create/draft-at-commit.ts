import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { revisionName } from '../../model/identity/identity.ts';
import { draftRef, packagePath } from '../../model/identity/layout.ts';
import type { RepositoryContext, WritePlan } from '../ports/repository-context.ts';
import { checkPlace } from './place.ts';

/** A draft whose content is that of a commit which others made. */
export interface DraftAtCommit {
  readonly package: string;
  readonly workspace: string;
  readonly commit: Oid;
}

/**
 * Plans a draft at a commit as it is: nothing is written but its branch. Its content and conditions count as pushed, so that its contributors are
 * the authors of the commits and not the actor who requests this.
 */
export async function planDraftAt(repo: RepositoryContext, wanted: DraftAtCommit): Promise<WritePlan> {
  const key = checkPlace(repo, { ...wanted, source: { type: 'copy', source: '' } });
  const path = packagePath(repo.layout, key.package);
  const [kptfile] = await repo.git.statObjects([`${wanted.commit}:${path}/Kptfile`]);
  if (kptfile?.type !== 'blob')
    throw new SluiceError('NotFound', `there is no package ${path} at the commit ${wanted.commit}`);
  return {
    updates: [{ type: 'create', ref: draftRef(repo.layout, key), new: wanted.commit }],
    name: revisionName(key),
    marks: [],
    revokes: false,
  };
}
