import { timestamp } from '../../../foundation/time/clock.ts';
import type { Commit } from '../../../git/git-repository.ts';
import { adoptionRef } from '../../model/identity/layout.ts';
import type { LifecycleStep } from '../../model/record/record.ts';
import { claimed } from '../../model/revision/attribution.ts';
import { isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import { readAdoption } from '../../trust/adoption.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';

/** Adoptions that are read, from the last one backwards. */
const MAX_ADOPTIONS = 50;

/**
 * The adoption of a publication by an operator, of which each later list has it too; undefined if there is none, or it is older than those that are
 * read. The statement has the list and not its operator, so that the name is a claim of the commit.
 */
export async function adoptionOf(
  { git, index, layout, trust }: Pick<RepositoryContext, 'git' | 'index' | 'layout' | 'trust'>,
  revision: PackageRevision,
): Promise<LifecycleStep | undefined> {
  const { ref, refOid } = revision;
  if (!isPublished(revision) || !index.isAdopted(ref, refOid)) return undefined;
  let next = index.ref(adoptionRef(layout));
  let found: LifecycleStep | undefined;
  for (let count = 0; next !== undefined; count += 1) {
    const { list } = await readAdoption(git, next, trust);
    if (list.get(ref) !== refOid) break;
    // A later one would name another operator and time.
    if (count === MAX_ADOPTIONS) return undefined;
    const { author, parents }: Commit = await git.readCommit(next);
    found = { action: 'adopt', by: claimed(author.name), face: 'git', at: timestamp(author.time), commit: refOid };
    [next] = parents;
  }
  return found;
}
