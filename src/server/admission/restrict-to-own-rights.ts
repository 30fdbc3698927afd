import type { HostRules } from '../../git/network/host-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import type { Admission } from '../handlers/handler.ts';
import { checkApprovalRequests } from './check-approval-requests.ts';
import { checkApprovers } from './check-approvers.ts';
import { checkDeliveryTarget, type PolicyGates } from './check-delivery-target.ts';
import { checkEngine } from './check-engine.ts';
import { checkGitLocation } from './check-git-location.ts';
import { checkReceivers } from './check-receivers.ts';
import { checkUserKeys } from './check-user-keys.ts';
import { checkWavePlan } from './check-wave-plan.ts';
import { checkWaveTarget, type PolicyIssuers } from './check-wave-target.ts';

/**
 * The rules beyond schemas for the kinds that Sluice reads: callers must not use the rights of Sluice to access what they may not access, nor
 * decide by other objects what only a user who may update Repositories may decide. The embedded server and the admission webhook of a
 * cluster both apply exactly these. Rules on RBAC objects are not among them: a kube-apiserver has its own.
 */
export function restrictToOwnRights(
  authorizer: Authorizer,
  hosts: HostRules,
  policyGates: PolicyGates,
  policyIssuers: PolicyIssuers,
): Admission {
  return async (planned) => {
    await checkUserKeys(planned, authorizer);
    await checkDeliveryTarget(planned, authorizer, policyGates);
    if (planned.operation === 'delete') return;
    await checkGitLocation(planned, authorizer, hosts);
    await checkReceivers(planned, authorizer, hosts);
    await checkEngine(planned, authorizer);
    await checkApprovers(planned, authorizer);
    await checkApprovalRequests(planned, authorizer);
    await checkWavePlan(planned, authorizer);
    await checkWaveTarget(planned, policyIssuers);
  };
}
