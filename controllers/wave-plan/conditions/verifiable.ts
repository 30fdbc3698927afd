import { counted, listed } from '../../../src/foundation/text/counted.ts';
import { type SelectedRevision, selects } from '../../../src/package/store/policies/selected-packages.ts';
import type { Repository } from '../../../src/resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { NewCondition } from '../../../src/resource/object/condition.ts';

/** Condition of a plan that verifies by engines: whether one reports on its targets. */
export const VERIFIABLE_CONDITION = 'Verifiable';

const MAX_NAMED = 3;
const NEXT =
  'set spec.engine of a DeliveryTarget that delivers it, or name a condition or a probe in spec.verification';

/** A revision of a target of a plan. */
export interface PlannedRevision {
  readonly id: string;
  readonly revision: SelectedRevision;
  readonly repository: Repository | undefined;
}

/**
 * Whether the engine of a DeliveryTarget reports on these revisions of a plan; undefined for one that is verified by a condition or a probe. Of
 * many revisions a part is enough: it is the configuration that is examined.
 */
export function verifiableCondition(
  { metadata: { name }, spec: { verification } }: Pick<WavePlan, 'metadata' | 'spec'>,
  revisions: readonly PlannedRevision[],
  targets: readonly DeliveryTarget[],
): NewCondition | undefined {
  const { deployed, condition, http } = verification;
  if (condition !== undefined || http !== undefined) return undefined;
  const type = VERIFIABLE_CONDITION;
  const names = deployed?.targets;
  const meant = names === undefined ? targets : targets.filter(({ metadata }) => names.includes(metadata.name));
  const reading = meant.filter(({ spec }) => spec.engine !== undefined);
  const isRead = ({ revision, repository }: PlannedRevision) =>
    reading.some(({ spec }) => selects(spec.selector, revision, repository));
  const open = revisions.filter((one) => !isRead(one));
  if (open.length === 0) return { type, status: 'True', reason: 'ReadByEngines', message: '' };
  const unread = meant.filter(({ spec }) => spec.engine === undefined).map(({ metadata }) => metadata.name);
  const which =
    names === undefined ? 'no DeliveryTarget' : `no DeliveryTarget of spec.verification.deployed (${names.join(', ')})`;
  const without = unread.length === 0 ? '' : ` (without it: ${listed(unread, MAX_NAMED)})`;
  const what = `nothing reports whether ${listed(
    open.map(({ id }) => id),
    MAX_NAMED,
  )} ${open.length === 1 ? 'is' : 'are'} healthy`;
  const message = `${what}: ${which} with spec.engine selects ${open.length === 1 ? 'it' : `these ${counted(open.length, 'package')}`}${without}; ${NEXT}; "sluice wave promote ${name}" passes a wave without verification`;
  return { type, status: 'False', reason: 'NoReader', message };
}
