import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import { foreignMessage } from '../../../src/package/kernel/foreign-files.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { BlockingRule, ForeignFiles } from '../../../src/package/model/revision/revision-state.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

type Place = Pick<PackageRepository, 'foreign' | 'git' | 'index'>;
type Evaluated = Pick<RevisionEvaluation, 'revision' | 'record' | 'conflict' | 'overtaken'>;

/** What a push of Sluice does not do, and a merge of the branch of a proposal would: it has the head, and not the package alone. */
export async function hostMergeRules(
  repository: Place,
  evaluation: Evaluated,
  { publishOn }: Pick<ReviewPolicy, 'publishOn'>,
): Promise<readonly BlockingRule[]> {
  const { name } = evaluation.revision;
  const foreign = await foreignFilesOf(repository, evaluation);
  const rules: BlockingRule[] = [];
  if (foreign !== undefined)
    rules.push({
      rule: 'ForeignFiles',
      message: foreignMessage({ name, foreign }),
      resolvedBy: 'users who may change its branch',
    });
  if (await combinesPackages(repository, evaluation)) {
    const why = evaluation.overtaken?.message ?? `the package of ${name} was published since its branch was made`;
    const when = publishOn === 'merge' ? 'nothing else holds up the check' : 'it has the host merge what was approved';
    rules.push({
      rule: 'PublishedSince',
      message: `a merge of the branch would combine both packages, which was not judged and is not published: ${why}. Sluice bases the branch on the main branch, with the package as it was proposed, once ${when}`,
      resolvedBy: REVIEW_ACTOR,
    });
  }
  return rules;
}

/** What the Git host would merge besides the package of a proposal. */
export async function foreignFilesOf(
  { foreign, index }: Pick<Place, 'foreign' | 'index'>,
  { revision: { commit, path }, record }: Pick<Evaluated, 'revision' | 'record'>,
): Promise<ForeignFiles | undefined> {
  const main = index.mainHead;
  return main === undefined ? undefined : foreign.ofHead({ commit, paths: [path], base: record.base?.commit }, main);
}

/**
 * Whether a merge would make another package of that of a proposal and the one on the main branch, although they do not conflict: another revision was
 * published there since the branch was based on it.
 */
export async function combinesPackages(
  { git, index }: Pick<Place, 'git' | 'index'>,
  { revision: { commit, path, tip }, record: { base }, conflict }: Evaluated,
): Promise<boolean> {
  const main = index.mainHead;
  if (main === undefined || conflict !== undefined) return false;
  const at = [main, ...(base === undefined ? [] : [base.commit])].map((oid) => `${oid}:${path}`);
  const [now, then] = await git.statObjects(at);
  if (now === undefined || now.oid === tip.tree || now.oid === then?.oid) return false;
  const common = await mergeBase(git, commit, main);
  const [merged] = common === undefined ? [] : await git.statObjects([`${common}:${path}`]);
  return now.oid !== merged?.oid;
}
