import type { PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import { createdAt } from '../../../src/package/api/objects/revision-object.ts';
import { proposedRef } from '../../../src/package/model/identity/layout.ts';
import {
  type PackageRevision as Revision,
  repositoryIdOf,
} from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../../src/resource/kinds/porch/package-variant.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { PullRequests } from '../pull-requests.ts';
import { inlineCode } from '../text/quote.ts';

const HEADS = 'refs/heads/';

/**
 * The revision of the same package that takes the place of a proposal, if there is one: it was created after it, and since it was proposed it
 * was published, or was proposed by the same controller (the same owner in `ownerReferences`). Of several, the one that was created last. A
 * proposal that is made again afterwards is a decision of its user, and is not superseded by the same revision.
 *
 * Each user who may edit a draft may name an owner. So the owner has to name the other revision too, as `variantTargets` returns it, or the same user
 * has proposed both.
 */
export function supersedingOf(
  proposal: Revision,
  ofPackage: readonly Revision[],
  targets: ReadonlySet<string> = new Set(),
): Revision | undefined {
  const proposed = proposedAt(proposal);
  if (proposed === undefined) return undefined;
  const owner = controllerOf(proposal);
  const created = Date.parse(createdAt(proposal));
  return ofPackage
    .filter((other) => other.name !== proposal.name && Date.parse(createdAt(other)) > created)
    .filter((other) => {
      if (other.lifecycle === 'Published' && other.revision > 0 && other.outOfBand === undefined)
        return other.tip.time > proposed;
      const isSameOwner = owner !== undefined && controllerOf(other)?.uid === owner.uid;
      if (!isSameOwner || !(targets.has(other.name) || isOfSameUser(proposal, other))) return false;
      return other.lifecycle === 'Proposed' && (proposedAt(other) ?? 0) > proposed;
    })
    .reduce<Revision | undefined>(
      (last, other) => (last === undefined || createdAt(other) > createdAt(last) ? other : last),
      undefined,
    );
}

/**
 * The revisions that the PackageVariant which owns a proposal reports as its own: only its controller writes the status. It is read only if another
 * proposal of the package names the same owner.
 */
export async function variantTargets(
  client: Client,
  proposal: Revision,
  ofPackage: readonly Revision[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { kind, name, uid } = controllerOf(proposal) ?? {};
  if (kind !== packageVariantKind.kind || typeof name !== 'string') return new Set();
  const isOther = (one: Revision) => one.lifecycle === 'Proposed' && one.name !== proposal.name;
  if (!ofPackage.some((one) => isOther(one) && controllerOf(one)?.uid === uid)) return new Set();
  const variant = await client.find(packageVariantKind, { namespace: proposal.namespace, name }, { signal });
  const own = variant?.metadata.uid === uid ? variant?.status?.downstreamTargets : undefined;
  return new Set(own?.flatMap((target) => target.name ?? []));
}

export interface SupersedeContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly signal: AbortSignal;
}

export interface Superseded {
  /** Gets a link to that of the other one; undefined where there is none, or other proposals share it. */
  readonly pull: PullRequest | undefined;
  readonly pulls: PullRequests;
  /** The pull request that a proposal shares with others. */
  sharedOf(proposed: Revision): Promise<PullRequest | undefined>;
}

/**
 * Ends a proposal whose place another revision took: its pull request gets a link to that of the other one, then it becomes a draft again, so
 * that the host closes the pull request. Returns false, with nothing done, while the other one has no pull request yet. After an end of the
 * process in between both steps are done again.
 */
export async function endSuperseded(
  { client, store, events, signal }: SupersedeContext,
  object: Stored<PackageRevision>,
  superseding: Revision,
  { pull, pulls, sharedOf }: Superseded,
): Promise<boolean> {
  const { layout } = store.repositoryOf(superseding);
  const branch = proposedRef(layout, superseding.key).slice(HEADS.length);
  const isPublished = superseding.lifecycle === 'Published';
  // One that has ended is not kept in memory.
  const own = await (isPublished ? pulls.forge.find(branch, pulls.base, signal) : pulls.ofBranch(branch, signal));
  const next = own?.state === 'open' || isPublished ? own : ((await sharedOf(superseding)) ?? own);
  if (!isPublished && next?.state !== 'open') return false;
  const what = isPublished ? `, which was published as v${superseding.revision}` : ', which was proposed after it';
  const where = next === undefined ? '' : `: ${next.url}`;
  if (pull !== undefined) {
    const text = `Superseded by package revision ${inlineCode(superseding.name)}${what}${where}`;
    try {
      await pulls.forge.setComment(pull.number, 'superseded', text, signal);
    } catch (error) {
      // The host permits no comments.
      if (!isPermanent(error)) throw error;
    }
  }
  const reason = `superseded by ${superseding.name}${what}${where}`;
  const draft = { ...object, spec: { ...object.spec, lifecycle: 'Draft' as const } };
  await client.subResource('approval').update(packageRevisionKind, draft, { reason, signal });
  events.record(object, 'Normal', 'Superseded', reason, 'ended');
  return true;
}

/** Revisions of the package of one. */
export function ofSamePackage(store: Pick<RevisionStore, 'list'>, revision: Revision): readonly Revision[] {
  return store.list({ repository: repositoryIdOf(revision), package: revision.key.package });
}

/** Milliseconds since the epoch; undefined without a record of it. */
function proposedAt(revision: Revision): number | undefined {
  const step = proposalOf(revision);
  return step === undefined ? undefined : Date.parse(step.at);
}

function proposalOf({ record }: Revision) {
  return record?.steps.findLast(({ action }) => action === 'propose');
}

/** Controllers of Sluice propose for all users, and who pushes is not known. */
function isOfSameUser(one: Revision, other: Revision): boolean {
  const [by, otherBy] = [proposalOf(one), proposalOf(other)];
  return by?.by === otherBy?.by && by?.face === otherBy?.face && by?.face !== 'controller' && by?.face !== 'git';
}

function controllerOf({ record }: Revision) {
  return record?.ownerReferences?.find(({ controller }) => controller === true);
}
