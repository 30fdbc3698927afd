import { SluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_POLICY, type IssuerRule, refuseIssuer } from '../../package/model/policy/policy.ts';
import { type WaveTarget, waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

/** The rules of the policies of a namespace about who may issue conditions. */
export type PolicyIssuers = (namespace: string) => Promise<readonly IssuerRule[]>;

type Condition = NonNullable<NonNullable<WaveTarget['status']>['conditions']>[number];

/** Conditions of the targets of a plan verify them: policies that name the issuers of a type apply to it here as in packages. */
export async function checkWaveTarget(
  { user, kind, object, old, subResource }: PlannedWrite,
  policyIssuers: PolicyIssuers,
): Promise<void> {
  if (kind.group !== waveTargetKind.group || kind.kind !== waveTargetKind.kind || subResource !== 'status') return;
  const before = conditionsOf(old);
  const after = conditionsOf(object);
  const isIn = (list: readonly Condition[], one: Condition) => list.some((other) => sameValue(one, other));
  const changed = [
    ...after.filter((one) => !isIn(before, one)),
    // Removed, or replaced.
    ...before.filter((one) => !isIn(after, one)),
  ];
  if (changed.length === 0) return;
  const { name, namespace = '' } = object.metadata;
  const policy = { ...DEFAULT_POLICY, givers: await policyIssuers(namespace) };
  for (const { type } of changed) {
    const refusal = refuseIssuer(policy, type, { name: user.name, groups: [...user.groups] }, 'api');
    if (refusal === undefined) continue;
    const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${refusal}; let one of these set it`;
    throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
  }
}

function conditionsOf(object: { readonly status?: unknown } | undefined): readonly Condition[] {
  const { conditions } = (object?.status ?? {}) as { readonly conditions?: unknown };
  return Array.isArray(conditions) ? (conditions as Condition[]) : [];
}
