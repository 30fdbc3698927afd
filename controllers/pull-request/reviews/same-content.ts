import { gatesOf, readKptfile } from '../../../kptfile-schema/index.ts';
import type { GitRepository } from '../../../src/git/git-repository.ts';
import { isOid } from '../../../src/git/objects/object-id.ts';
import { contentDigest } from '../../../src/package/model/content/content.ts';
import { unreadableReason } from '../../../src/package/model/content/unreadable-content.ts';
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

/** The digest of the content of the package at `<commit>:<path>`; undefined if there is none, or one that cannot be read. */
export async function contentAt(git: GitRepository, specification: string): Promise<string | undefined> {
  return (await packageAt(git, specification))?.content;
}

/** Its digest and the gates of its Kptfile. However large the package is, this needs the entries of its folder and the Kptfile alone. */
export async function packageAt(
  git: GitRepository,
  specification: string,
): Promise<{ readonly content: string; readonly gates: readonly string[] } | undefined> {
  try {
    const entries = await git.readTree(specification);
    const file = entries?.find(({ name, mode }) => name === 'Kptfile' && mode.startsWith('100'));
    if (entries === undefined || file === undefined) return undefined;
    const [text] = await git.readObjects([file.oid]);
    if (text === undefined) await git.expectObject(file.oid);
    if (text?.type !== 'blob') return undefined;
    const read = readKptfile(text.data);
    const kptfile = read.ok ? read.kptfile : undefined;
    return {
      content: contentDigest(entries, kptfile, text.data),
      gates: kptfile === undefined ? [] : gatesOf(kptfile),
    };
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return undefined;
  }
}
