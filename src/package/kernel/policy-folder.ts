import type { EffectivePolicy, PolicyFolder } from '../model/policy/policy.ts';
import type { Refusal, RevisionState, TransitionRequest } from '../model/revision/revision-state.ts';

/** Why the actor may not publish a package that can change policies, nor prepare that; undefined if it may, or the package cannot. */
export function refusePolicyChange(
  { name }: Pick<RevisionState, 'name'>,
  { face, mayChangePoliciesIn = [] }: Pick<TransitionRequest, 'face' | 'mayChangePoliciesIn'>,
  { policyFolders }: Pick<EffectivePolicy, 'policyFolders'>,
): Refusal | undefined {
  const denied = policyFolders.find(
    ({ namespace }) => face === 'controller' || !mayChangePoliciesIn.includes(namespace),
  );
  return denied && { code: 'NotAllowed', message: policyChangeMessage(name, denied) };
}

export function policyChangeMessage(name: string, { namespace, repository, folder }: PolicyFolder): string {
  return `${name} is in, above or below the folder ${folder} with the policies of Repository ${namespace}/${repository}: only a user who may update packagepolicies in namespace ${namespace} may create, propose, approve or remove it by a request to Sluice, and no controller; change policies by a commit to the branch of that Repository, or use another package name`;
}
