import { readKptfile } from '../../../kptfile-schema/index.ts';
import { unlessMissing, unlessTooLarge } from '../../../src/foundation/sluice-error.ts';
import type { GitRepository } from '../../../src/git/git-repository.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { contentDigest, readPackage } from '../../../src/package/model/content/content.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';

/**
 * Of these commits of its branch, those at which the package has the content that it has now. Conditions are not content: a gate that opens
 * after a review does not outdate the review. A commit that is not in the repository any more is none of them.
 */
export async function commitsWithContent(
  git: GitRepository,
  {
    revision,
    content,
  }: {
    readonly revision: Pick<RevisionEvaluation['revision'], 'commit' | 'path'>;
    readonly content: Pick<RevisionEvaluation['content'], 'content'>;
  },
  commits: Iterable<string>,
): Promise<ReadonlySet<string>> {
  const same = new Set<string>();
  for (const commit of new Set(commits)) {
    if (!isOid(commit)) continue;
    if (commit === revision.commit || (await contentAt(git, `${commit}:${revision.path}`)) === content.content)
      same.add(commit);
  }
  return same;
}

/** The digest of the content of the package at `<commit>:<path>`; undefined if there is none, or one that is too large to be read. */
export async function contentAt(git: GitRepository, specification: string): Promise<string | undefined> {
  const entries = await git.readTree(specification);
  const whole = entries && (await unlessTooLarge(unlessMissing(readPackage(git, specification, undefined))));
  const text = whole?.files.get('Kptfile');
  if (entries === undefined || text === undefined) return undefined;
  const read = readKptfile(text);
  return contentDigest(entries, read.ok ? read.kptfile : undefined, text);
}
