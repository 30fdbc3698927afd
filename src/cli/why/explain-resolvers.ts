import { arrangeResolvers } from '../../../controllers/revision/arrange-resolvers.ts';
import { RENDERER } from '../../../controllers/revision/run-state.ts';
import type { Judgement } from '../../package/revision-store.ts';
import { namesFunctions, RENDERED } from '../../package/write/render.ts';
import type { Surroundings } from './explain-gates.ts';
import type { Reason, ResolverExplanation } from './explanation.ts';

/** Who works on a draft, in which order, and what of their arrangement or of the pipeline keeps it back. */
export function explainResolvers(
  { revision, content }: Judgement,
  { resolvers }: Surroundings,
): { readonly order: ResolverExplanation[]; readonly reasons: Reason[] } {
  if (revision.lifecycle !== 'Draft') return { order: [], reasons: [] };
  const { order, problems } = arrangeResolvers(resolvers);
  const pipeline: ResolverExplanation[] =
    namesFunctions(content.files) === false ? [] : [{ name: RENDERER, claims: [RENDERED.type], waitsFor: [] }];
  const { conditions = [] } = revision.kptfile?.status ?? {};
  // What the revision controller wrote down is told with its condition.
  const reasons: Reason[] = problems
    .filter(({ message }) => !conditions.some((condition) => condition.message === message))
    .map(({ reason, message }) => ({ reason, message }));
  const rendered = conditions.find(({ type }) => type === RENDERED.type);
  if (rendered?.status === 'False')
    reasons.push({ reason: 'RenderFailed', message: `it could not be rendered: ${rendered.message ?? ''}` });
  return {
    order: [...pipeline, ...order.map(({ name, claims, waitsFor = [] }) => ({ name, claims, waitsFor }))],
    reasons,
  };
}
