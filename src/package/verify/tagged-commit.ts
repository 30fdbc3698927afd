import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { targetOfTag } from '../../git/objects/tag-codec.ts';

/** Tags of tags are followed so far. */
const MAX_TAG_DEPTH = 5;

/** The commit that a tag leads to. */
export async function taggedCommit(git: GitRepository, oid: Oid): Promise<Oid | undefined> {
  let next: Oid | undefined = oid;
  for (let depth = 0; next !== undefined && depth <= MAX_TAG_DEPTH; depth += 1) {
    const [object] = await git.readObjects([next]);
    if (object?.type === 'commit') return next;
    next = object?.type === 'tag' ? targetOfTag(object.data) : undefined;
  }
  return undefined;
}
