import { conditionsOf } from '../../kptfile-schema/index.ts';
import type { Explainer } from '../../src/package/api/explain/explainer.ts';
import { formatConditionType } from '../../src/package/model/policy/condition-type.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import type { Reason, ResolverExplanation } from '../../src/package/model/revision/explanation.ts';
import { namesFunctions, RENDERED } from '../../src/package/plan/edit/render.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { arrangeResolvers, type OrderedResolver } from './arrange-resolvers.ts';
import { RENDERER } from './run-state.ts';

/** Reports which resolvers run on a draft, in which order, and problems of their configuration or of the pipeline. */
export function resolverExplainer(builtIn: readonly OrderedResolver[]): Explainer {
  return {
    explain({ evaluation }, { resolvers }) {
      const { revision, content } = evaluation;
      if (revision.lifecycle !== 'Draft') return {};
      const { order, problems } = arrangeResolvers(resolvers);
      const pipeline: ResolverExplanation[] =
        namesFunctions(content.files) === false ? [] : [{ name: RENDERER, claims: [RENDERED.type], waitsFor: [] }];
      const relevant = order
        .filter((one) => isRelevant(one, evaluation, builtIn))
        .map(({ name, claims, waitsFor = [] }) => ({ name, claims, waitsFor }));
      const { conditions = [] } = revision.kptfile?.status ?? {};
      // A problem that the revision controller recorded is reported with its condition.
      const reasons: Reason[] = problems
        .filter(({ message }) => !conditions.some((condition) => condition.message === message))
        .map(({ reason, message }) => ({ reason, message }));
      const rendered = conditions.find(({ type }) => type === RENDERED.type);
      if (rendered?.status === 'False')
        reasons.push({ reason: 'RenderFailed', message: `it could not be rendered: ${rendered.message ?? ''}` });
      return { resolvers: [...pipeline, ...relevant], reasons };
    },
  };
}

/** True if it applies to the package: it has reported on this content, or claims a gate, a condition or an object of the package. */
function isRelevant(
  { name, claims }: OrderedResolver,
  { revision, record, content, gates }: RevisionEvaluation,
  builtIn: readonly OrderedResolver[],
): boolean {
  const isSettled = record.settled?.content === content.content;
  if (isSettled && record.settled?.resolvers.includes(name) === true) return true;
  const conditions = revision.kptfile === undefined ? [] : [...conditionsOf(revision.kptfile).keys()];
  const types = [...gates.map(({ type }) => type), ...conditions, ...content.objects().map(formatConditionType)];
  if (types.some((type) => claims.some((claim) => matchesPattern(claim, type)))) return true;
  // For one that is not built in, only a report shows that it applies.
  return !isSettled && !builtIn.some((known) => known.name === name);
}
