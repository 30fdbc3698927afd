import { SluiceError } from '../../foundation/sluice-error.ts';
import { APPROVAL_ANNOTATIONS } from '../../package/model/revision/lifecycle-annotations.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

interface Annotated {
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly annotationExprs?: readonly { readonly key?: string; readonly keyExpr?: string }[] | undefined;
}

interface VariantSpec extends Annotated {
  readonly targets?: readonly { readonly template?: Annotated }[] | undefined;
}

interface PolicySpec {
  readonly kptfileApprovals?: boolean | undefined;
  readonly approval?: { readonly automatic?: boolean | undefined } | undefined;
}

/**
 * Objects by which controllers approve need the right to approve: policies with automatic approval, and variants whose annotations, which get
 * onto their drafts, request it. Otherwise users who may only edit, or only write policies, would have a controller approve for them. Every
 * change of such an object needs the right, since it decides what is approved.
 */
export async function checkApprovalRequests(
  { user, kind, object, old, subResource }: PlannedWrite,
  authorizer: Authorizer,
): Promise<void> {
  if (subResource !== '' || sameValue(object.spec, old?.spec)) return;
  const is = (one: Pick<Kind, 'group' | 'kind'>) => one.group === kind.group && one.kind === kind.kind;
  const field = is(packagePolicyKind)
    ? policyRequest(object.spec as PolicySpec | undefined)
    : is(packageVariantKind) || is(packageVariantSetKind)
      ? variantRequest(object.spec as VariantSpec | undefined)
      : undefined;
  if (field === undefined) return;
  const { name, namespace = '' } = object.metadata;
  const about = { group: 'porch.kpt.dev', resource: 'packagerevisions', subResource: 'approval', namespace };
  if (await isAllowed(authorizer, permission(user, 'update', about))) return;
  const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${field}, which needs the verb "update" on packagerevisions/approval, and User ${JSON.stringify(user.name)} does not have it; leave it out, or let a user who may approve write this`;
  throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
}

/** What of a policy lets controllers approve. */
function policyRequest({ approval, kptfileApprovals }: PolicySpec = {}): string | undefined {
  if (approval?.automatic === true) return 'spec.approval.automatic lets a controller approve';
  return kptfileApprovals === true ? 'spec.kptfileApprovals lets files request approvals' : undefined;
}

/** What of a variant or a set requests approvals, or may do so. */
function variantRequest(spec: VariantSpec = {}): string | undefined {
  const { targets } = spec;
  const places = [
    { at: 'spec', of: spec },
    ...(Array.isArray(targets) ? targets : []).map(({ template }, index) => ({
      ...{ at: `spec.targets[${index}].template`, of: template ?? {} },
    })),
  ];
  for (const { at, of } of places) {
    const { annotations = {}, annotationExprs = [] } = of;
    const fixed = APPROVAL_ANNOTATIONS.find((key) => Object.hasOwn(annotations, key));
    if (fixed !== undefined) return `${at}.annotations requests approvals by ${fixed}`;
    for (const [index, { key, keyExpr }] of annotationExprs.entries()) {
      const where = `${at}.annotationExprs[${index}]`;
      if (key !== undefined && APPROVAL_ANNOTATIONS.includes(key)) return `${where} requests approvals by ${key}`;
      if (keyExpr !== undefined) return `${where}.keyExpr can request approvals by what it yields`;
    }
  }
  return undefined;
}
