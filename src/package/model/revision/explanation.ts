import { z } from 'zod';
import type { DeepReadonly } from '../../../resource/object/object.ts';

// The explanation of a revision's state, as data, which the sub-resource `explain` of PackageRevision returns and `sluice why` prints.
// Enumerations are open texts, so that a client can read the values of a newer server.

const conditionSchema = z.object({
  status: z.string(),
  reason: z.string().exactOptional(),
  message: z.string().exactOptional(),
});

const gateSchema = z.object({
  type: z.string().describe('The condition type of the gate.'),
  open: z.boolean(),
  state: z.string().describe('Open, Missing, NotTrue, Unproven, Stale, Expired or NotAllowed.'),
  requiredBy: z.array(z.string()),
  approveOnly: z.boolean().describe('Required at approval, not at proposal.'),
  condition: conditionSchema.exactOptional(),
  since: z.string().exactOptional().describe('Since when it is as it is, RFC 3339.'),
  explanation: z.string(),
  boundTo: z.array(z.string()).describe('The inputs that the verdict was issued for.'),
  changed: z.array(z.string()).describe('Of these, what has changed since.'),
  external: z
    .array(z.object({ source: z.string(), id: z.string(), value: z.string(), time: z.string() }))
    .exactOptional()
    .describe('What the verdict rests on besides the package.'),
  givenBy: z.string().exactOptional(),
  givenAt: z.string().exactOptional(),
  expires: z
    .string()
    .exactOptional()
    .describe('When the condition stops counting, RFC 3339, where a policy limits that.'),
  settledBy: z.string(),
  deadline: z.object({ due: z.string(), overdue: z.boolean() }).exactOptional(),
  next: z.string().exactOptional().describe('What settles it: a command if it begins with "sluice ".'),
});

const approvalsSchema = z.object({
  needed: z.number(),
  given: z
    .array(z.object({ subject: z.string(), face: z.string(), at: z.string() }))
    .describe('The approvals that count.'),
  barred: z.array(z.object({ name: z.string(), because: z.string() })).describe('People who must not approve it.'),
});

const reasonSchema = z.object({
  reason: z.string().describe('One CamelCase word for programs.'),
  message: z.string(),
  since: z.string().exactOptional().describe('Since when it holds, RFC 3339, if that is known.'),
  until: z.string().exactOptional().describe('When it ends at the latest, RFC 3339, if it ends by itself.'),
  resolvedBy: z.string().exactOptional().describe('Users, or what else, that can end it.'),
});

const resolverSchema = z.object({
  name: z.string(),
  claims: z.array(z.string()).describe('Condition types, or prefixes, that it settles.'),
  waitsFor: z.array(z.string()).describe('Condition types, or prefixes, that must be True before it runs.'),
});

const deploymentStateSchema = z.object({
  status: z.string().describe('True, False or Unknown.'),
  reason: z.string(),
  message: z.string(),
  since: z.string().describe('RFC 3339.'),
});

const deliverySchema = z.object({
  target: z.string().describe('Name of the DeliveryTarget, or of the repository if it is a deployment repository.'),
  state: z.string().describe('Delivered, Held, OtherRevision, NotDelivered or Unknown.'),
  commit: z.string().exactOptional(),
  at: z.string().exactOptional().describe('When it was delivered, RFC 3339; for the state Delivered.'),
  message: z.string(),
  deployment: z
    .object({
      synced: deploymentStateSchema,
      healthy: deploymentStateSchema,
    })
    .exactOptional()
    .describe('What the engine of the target reports of it.'),
  notes: z
    .array(z.string())
    .exactOptional()
    .describe('Further facts about the target: rollbacks, changes of other writers, syncs that could not be started.'),
});

export const explanationSchema = z.object({
  name: z.string(),
  repository: z.string(),
  package: z.string(),
  workspace: z.string(),
  lifecycle: z.string(),
  revision: z.number().describe('-1 for the package on the main branch, 0 before publication.'),
  latest: z.boolean(),
  commit: z.string(),
  last: z
    .object({ by: z.string(), at: z.string(), action: z.string() })
    .exactOptional()
    .describe('The last actor that moved or changed it; absent for the package on the main branch.'),
  enforcement: z.string().describe('enforce, warn or off: how far its repository enforces gates.'),
  gates: z.array(gateSchema),
  contributors: z
    .array(z.object({ name: z.string(), face: z.string(), since: z.string() }))
    .describe('Who changed its content since the last published revision; push is an unknown person.'),
  approvals: approvalsSchema.exactOptional().describe('Present for a proposed revision.'),
  reasons: z.array(reasonSchema).describe('Why it is where it is, besides gates.'),
  resolvers: z.array(resolverSchema).describe('What works on a draft, in the order of the runs; the pipeline first.'),
  delivery: z.array(deliverySchema),
  next: z
    .array(z.string())
    .describe(
      'Commands that would move it on, the most likely first; words where a controller works on it, or a rule of the Git host has to be changed before.',
    ),
  alternatives: z
    .array(z.string())
    .exactOptional()
    .describe('Commands that end the wait in another way, such as a rejection.'),
});

export type Explanation = DeepReadonly<z.infer<typeof explanationSchema>>;
export type GateExplanation = Explanation['gates'][number];
export type ApprovalExplanation = NonNullable<Explanation['approvals']>;
export type Reason = Explanation['reasons'][number];
export type ResolverExplanation = Explanation['resolvers'][number];
export type DeliveryExplanation = Explanation['delivery'][number];
