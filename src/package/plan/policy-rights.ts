import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { refusePolicyChange } from '../kernel/policy-folder.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';

/** The namespaces of the policies that a package can change in which the caller may change PackagePolicies. */
export async function policyRights(
  { face, mayChangePolicies }: RequestContext,
  { policyFolders }: Pick<EffectivePolicy, 'policyFolders'>,
): Promise<{ readonly mayChangePoliciesIn?: readonly string[] }> {
  const namespaces = [...new Set(policyFolders.map(({ namespace }) => namespace))];
  if (namespaces.length === 0 || face === 'controller') return {};
  const allowed: string[] = [];
  for (const namespace of namespaces)
    if (mayChangePolicies === undefined ? face === 'cli' : await mayChangePolicies(namespace)) allowed.push(namespace);
  return { mayChangePoliciesIn: allowed };
}

/** Throws Refused if the caller may not create a package that can change policies. */
export async function refusePolicyPackage(
  name: string,
  policy: Pick<EffectivePolicy, 'policyFolders'>,
  context: RequestContext,
): Promise<void> {
  const request = { face: context.face, ...(await policyRights(context, policy)) };
  const refusal = refusePolicyChange({ name }, request, policy);
  if (refusal !== undefined) throw new SluiceError('Refused', refusal.message);
}
