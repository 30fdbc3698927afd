import { z } from 'zod';
import { type FieldCause, forbidden } from '../../object/invalid-object.ts';
import type { DeepReadonly } from '../../object/object.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { approvalFields } from './approval-schema.ts';
import { packagePolicyKind, packagePolicySpec } from './package-policy.ts';

/** Fields of a PackagePolicy that permit something, or whose effect depends on credentials. */
const REFUSED_IN_SPEC = ['givers', 'validatorConditions', 'kptfileApprovals', 'autoPropose', 'review'] as const;
const REFUSED_IN_APPROVAL = ['automatic', 'breakGlass'] as const;
const RULE = 'a policy in a repository can only restrict; set it in a PackagePolicy object';

const { selector, requiredGates, validFor, pushDenied, gateDeadlines, dependencies } = packagePolicySpec.shape;
const { forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak } = approvalFields.shape;

const repositoryPolicySpec = z.object({
  ...{ selector, requiredGates, validFor, pushDenied, gateDeadlines, dependencies },
  pushMayGive: z.boolean().optional(),
  commitBudgetPerHour: z.int().min(0).optional(),
  approval: z
    .object({
      ...{ forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak },
      ...unread(REFUSED_IN_APPROVAL),
    })
    .prefault({}),
  ...unread(REFUSED_IN_SPEC),
});

/**
 * A PackagePolicy in a file of a repository has this form: each user who may push there may write it, so it has the fields that restrict, and no others.
 * The server stores no objects of this form.
 */
export const repositoryPolicyKind = defineKind({
  group: packagePolicyKind.group,
  version: packagePolicyKind.version,
  kind: packagePolicyKind.kind,
  plural: packagePolicyKind.plural,
  description: packagePolicyKind.description,
  spec: repositoryPolicySpec,
  strategy: { validate: ({ spec }) => refusedFields(spec) },
});

export type RepositoryPolicy = ObjectOf<typeof repositoryPolicyKind>;

/** Fields that are reported by `refusedFields`, and not as unknown. */
function unread<Name extends string>(names: readonly Name[]): Record<Name, z.ZodOptional<z.ZodUnknown>> {
  return Object.fromEntries(names.map((name) => [name, z.unknown().optional()])) as Record<
    Name,
    z.ZodOptional<z.ZodUnknown>
  >;
}

function refusedFields({ approval, ...spec }: DeepReadonly<z.output<typeof repositoryPolicySpec>>): FieldCause[] {
  return [
    ...REFUSED_IN_SPEC.filter((name) => spec[name] !== undefined).map((name) => forbidden(['spec', name], RULE)),
    ...(spec.pushMayGive === true ? [forbidden(['spec', 'pushMayGive'], RULE)] : []),
    ...REFUSED_IN_APPROVAL.filter((name) => approval[name] !== undefined).map((name) =>
      forbidden(['spec', 'approval', name], RULE),
    ),
  ];
}
