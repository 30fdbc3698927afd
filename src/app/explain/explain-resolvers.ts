import { arrangeResolvers, type Claims } from '../../../controllers/revision/arrange-resolvers.ts';
import { RENDERER } from '../../../controllers/revision/run-state.ts';
import { conditionsOf } from '../../../kptfile-schema/index.ts';
import { formatConditionType } from '../../package/model/condition-type.ts';
import { matchesPattern } from '../../package/model/policy.ts';
import { namesFunctions, RENDERED } from '../../package/plan/render.ts';
import type { Judgement } from '../../package/store/revision-store.ts';
import { BUILT_IN_RESOLVERS } from '../built-in-resolvers.ts';
import type { Surroundings } from './explain-gates.ts';
import type { Reason, ResolverExplanation } from './explanation.ts';

/** Who works on a draft, in which order, and what of their arrangement or of the pipeline keeps it back. */
export function explainResolvers(
  judgement: Judgement,
  { resolvers }: Surroundings,
): { readonly order: ResolverExplanation[]; readonly reasons: Reason[] } {
  const { revision, content } = judgement;
  if (revision.lifecycle !== 'Draft') return { order: [], reasons: [] };
  const { order, problems } = arrangeResolvers(resolvers);
  const pipeline: ResolverExplanation[] =
    namesFunctions(content.files) === false ? [] : [{ name: RENDERER, claims: [RENDERED.type], waitsFor: [] }];
  const { conditions = [] } = revision.kptfile?.status ?? {};
  // What the revision controller recorded is reported with its condition.
  const reasons: Reason[] = problems
    .filter(({ message }) => !conditions.some((condition) => condition.message === message))
    .map(({ reason, message }) => ({ reason, message }));
  const rendered = conditions.find(({ type }) => type === RENDERED.type);
  if (rendered?.status === 'False')
    reasons.push({ reason: 'RenderFailed', message: `it could not be rendered: ${rendered.message ?? ''}` });
  return {
    order: [
      ...pipeline,
      ...order
        .filter((one) => isRelevant(one, judgement))
        .map(({ name, claims, waitsFor = [] }) => ({ name, claims, waitsFor })),
    ],
    reasons,
  };
}

/** The package is its business: it has reported on this content, or claims a gate, a condition or an object of the package. */
function isRelevant({ name, claims }: Claims, { revision, record, content, gates }: Judgement): boolean {
  const isSettled = record.settled?.content === content.content;
  if (isSettled && record.settled?.resolvers.includes(name) === true) return true;
  const conditions = revision.kptfile === undefined ? [] : [...conditionsOf(revision.kptfile).keys()];
  const types = [...gates.map(({ type }) => type), ...conditions, ...content.objects().map(formatConditionType)];
  if (types.some((type) => claims.some((claim) => matchesPattern(claim, type)))) return true;
  // Of one that is not built in only a report says whether it has a part.
  return !isSettled && !BUILT_IN_RESOLVERS.some((known) => known.name === name);
}
