import type { IssuerRule } from '../../package/model/policy/policy.ts';
import type { Client } from '../../resource/client/client.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';

/**
 * Returns the condition types that policies require as gates. Those of all namespaces: a policy also applies in others that have registered
 * the same packages.
 */
export async function policyGatesOf(client: Client): Promise<ReadonlySet<string>> {
  const { items } = await client.list(packagePolicyKind, {});
  return new Set(items.flatMap(({ spec }) => spec.requiredGates.map(({ conditionType }) => conditionType)));
}

/** The rules of all policies of a namespace about who may issue conditions. */
export async function policyIssuersOf(client: Client, namespace: string): Promise<readonly IssuerRule[]> {
  const { items } = await client.list(packagePolicyKind, { namespace });
  return items.flatMap(({ metadata: { name: policy }, spec }) => spec.givers.map((rule) => ({ ...rule, policy })));
}
