import { SluiceError } from '../../foundation/sluice-error.ts';
import { WAVE_PLAN_FINALIZER, type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import { rolesWith } from '../authorization/roles-with.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

type Approval = WavePlan['spec']['approvals'][number];

/**
 * A plan approves revisions, so callers must be allowed to approve those of its namespace. And callers approve waves in their own name only,
 * as members of the groups that they have at that time.
 */
export async function checkWavePlan(
  { user, kind, object, old, subResource }: PlannedWrite,
  authorizer: Authorizer,
): Promise<void> {
  if (kind.group !== wavePlanKind.group || kind.kind !== wavePlanKind.kind || subResource !== '') return;
  const releases = isHeld(old) && !isHeld(object);
  if (sameValue(object.spec, old?.spec) && !releases) return;
  const { name, namespace = '' } = object.metadata;
  const refuse = (why: string) => {
    const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${why}`;
    return new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
  };
  const right = { group: 'porch.kpt.dev', resource: 'packagerevisions', subResource: 'approval' };
  if (!(await isAllowed(authorizer, permission(user, 'update', { ...right, namespace }))))
    throw refuse(
      `${releases ? `without the finalizer ${WAVE_PLAN_FINALIZER} policies can approve what the plan holds` : 'a plan approves package revisions'}, which needs the verb "update" on packagerevisions/approval, and User ${JSON.stringify(user.name)} does not have it; let a user who may approve write this, with one of the roles ${rolesWith('update', right).join(', ')}`,
    );
  const pause = pauseOf(object);
  const pauseBefore = pauseOf(old);
  // A name that stays from a pause before is not that of this one.
  const isPausedNow = pause.pausedBy !== pauseBefore.pausedBy || (pause.paused === true && pauseBefore.paused !== true);
  if (isPausedNow && pause.pausedBy !== undefined && pause.pausedBy !== user.name)
    throw refuse(
      `spec.pausedBy is ${JSON.stringify(pause.pausedBy)}, and you are ${JSON.stringify(user.name)}; name yourself, or leave it out`,
    );
  const before = approvalsOf(old);
  for (const approval of approvalsOf(object)) {
    if (before.some((one) => sameValue(one, approval))) continue;
    if (approval.user !== user.name)
      throw refuse(
        `spec.approvals approves wave ${JSON.stringify(approval.wave)} as ${JSON.stringify(approval.user)}, and you are ${JSON.stringify(user.name)}; name yourself`,
      );
    const foreign = approval.groups?.find((group) => !user.groups.includes(group));
    if (foreign !== undefined)
      throw refuse(
        `spec.approvals names the group ${JSON.stringify(foreign)}, and you are no member of it; leave it out`,
      );
  }
}

/** Of a review only the identity is known to have its form. */
function isHeld(object: { readonly metadata?: { readonly finalizers?: unknown } } | undefined): boolean {
  const finalizers = object?.metadata?.finalizers;
  return Array.isArray(finalizers) && finalizers.includes(WAVE_PLAN_FINALIZER);
}

function pauseOf(object: { readonly spec?: unknown } | undefined): Partial<WavePlan['spec']> {
  return (object?.spec ?? {}) as Partial<WavePlan['spec']>;
}

function approvalsOf(object: { readonly spec?: unknown } | undefined): readonly Approval[] {
  const { approvals } = (object?.spec ?? {}) as { readonly approvals?: unknown };
  return Array.isArray(approvals) ? (approvals as Approval[]) : [];
}
