import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { listed } from '../../src/foundation/text/counted.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { NewCondition } from '../../src/resource/object/condition.ts';
import type { MayApprove } from '../pull-request/rights.ts';

/** Type of the condition of a policy whose quorum names users. */
export const QUORUM_REACHABLE = 'QuorumReachable';

const GROUP = 'group:';
/** Users and groups that a message names. */
const MAX_NAMED = 10;

/**
 * Whether the users and groups of a quorum may approve in the namespace of the policy, by their names: what else gives a user the right, such as a
 * group of a token, is known only with a request. Undefined for a policy without named users, and while it is not decided.
 */
export async function quorumRights(
  { metadata, spec }: Pick<PackagePolicy, 'metadata' | 'spec'>,
  mayApprove: MayApprove,
  signal: AbortSignal,
): Promise<NewCondition | undefined> {
  const { required, from } = spec.approval.quorum ?? { required: 0, from: [] };
  if (from.length === 0) return undefined;
  const place = { name: '', ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) };
  const without: string[] = [];
  try {
    for (const one of new Set(from)) {
      const user = one.startsWith(GROUP) ? { name: '', groups: [one.slice(GROUP.length)] } : { name: one, groups: [] };
      if (!(await mayApprove(user, place, signal))) without.push(one);
    }
  } catch (error) {
    // Busy: the API is not served yet.
    if (isSluiceError(error, 'Unavailable') || isSluiceError(error, 'Busy')) return undefined;
    throw error;
  }
  const type = QUORUM_REACHABLE;
  const permitted = [...new Set(from)].filter((one) => !without.includes(one));
  const isReachable = permitted.length >= required || permitted.some((one) => one.startsWith(GROUP));
  if (without.length === 0) return { type, status: 'True', reason: 'Permitted', message: '' };
  const message = `spec.approval.quorum.from names ${listed(without, MAX_NAMED)} without the right to approve in this namespace (update of packagerevisions/approval), unless other groups of these users give it; bind a role that has it, such as sluice:approver`;
  if (isReachable) return { type, status: 'True', reason: 'SomePermitted', message };
  return { type, status: 'False', reason: 'NotPermitted', message };
}
