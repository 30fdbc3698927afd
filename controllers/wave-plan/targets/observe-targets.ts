import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { messageOf } from '../../../src/foundation/sluice-error.ts';
import { isDecided } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../../src/resource/kinds/sluice/wave/wave-target.ts';
import { parseDuration } from '../../../src/resource/object/duration.ts';
import { DEFAULT_NAMESPACE, keyOf, type Stored } from '../../../src/resource/object/object.ts';
import type { TargetObservation, Verification } from '../../../src/rollout/wave/observation.ts';
import { isOver, type PlanState, type TargetRecord } from '../../../src/rollout/wave/plan-state.ts';
import type { Selection } from '../select-revisions.ts';
import type { PlanProbes } from './plan-probes.ts';
import { probeAddress } from './probe-target.ts';
import { verifyCondition, verifyDeployed } from './verify-target.ts';

export interface ObserveOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'findRepository'>;
  /** The objects of delivered packages, from an informer. Default: they are listed for each observation. */
  readonly delivered?: DeliveredPackages | undefined;
}

const VERIFIABLE: ReadonlySet<string> = new Set(['Approved', 'Verified', 'Failed', 'Unreachable']);

/** What is known of the recorded revision of a target, without its verification. */
export function observeRevision(
  { metadata: { namespace = DEFAULT_NAMESPACE } }: WavePlan,
  target: TargetRecord,
  selection: Selection,
  store: ObserveOptions['store'],
): TargetObservation {
  if (isUnknown(namespace, target.id, store)) {
    const repository = repositoryOfId(target.id);
    if (selection.hasRepository(repository)) return {};
    return { failure: `repository ${repository} is not registered` };
  }
  const found = store.find(`${namespace}/${target.revision}`);
  if (found?.lifecycle === 'Proposed')
    return { revision: { state: 'Proposed', ...(isDecided(found) ? { isApproved: true } : {}) } };
  const isPublished = found?.lifecycle === 'Published' || found?.lifecycle === 'DeletionProposed';
  return { revision: isPublished ? { state: 'Published', number: found.revision } : { state: 'Gone' } };
}

/** True for a target whose repository cannot be read, or is not registered: what became of its revision is not known. */
export function isUnknown(namespace: string, id: string, store: Pick<RevisionStore, 'findRepository'>): boolean {
  return store.findRepository(`${namespace}/${repositoryOfId(id)}`) === undefined;
}

export function repositoryOfId(id: string): string {
  return id.slice(0, id.indexOf('/'));
}

interface VerifyTargetsOptions extends ObserveOptions, Pick<Selection, 'repositoryOf'> {
  readonly probes: PlanProbes;
}

/** The verification of each target of the plan that is published. It waits for no system but the storage. */
export async function verifyTargets(
  plan: Stored<WavePlan>,
  state: PlanState,
  objects: ReadonlyMap<string, Stored<WaveTarget>>,
  { probes, ...options }: VerifyTargetsOptions,
): Promise<ReadonlyMap<string, Verification>> {
  const { deployed, condition, http } = plan.spec.verification;
  const published = [...state.targets.values()].filter(
    (target) => target.published !== undefined && VERIFIABLE.has(target.phase),
  );
  const isObserved = !isOver(state.phase) && published.length > 0;
  if (http === undefined || !isObserved) probes.forget(keyOf(plan));
  if (!isObserved) return new Map();
  if (condition !== undefined)
    return new Map(
      published.flatMap(({ id, published: number = 0 }) => {
        const object = objects.get(id);
        return object === undefined ? [] : [[id, verifyCondition(object, condition.type, number)] as const];
      }),
    );
  if (http !== undefined) {
    const addresses = new Map(published.map(({ id }) => [id, addressOf(http.url, id)]));
    // A result is about one publication, also where several of them share an address.
    const publicationOf = ({ id, published: number = 0 }: TargetRecord) => `${plan.metadata.uid} ${id} v${number}`;
    const urlOf = new Map(
      published.flatMap((target): [string, string][] => {
        const address = addresses.get(target.id);
        return address !== undefined && 'url' in address ? [[publicationOf(target), address.url]] : [];
      }),
    );
    const resultOf = probes.read(keyOf(plan), urlOf, parseDuration(http.interval) ?? 0);
    return new Map(
      published.map((target): [string, Verification] => {
        const address = addresses.get(target.id);
        if (address !== undefined && 'problem' in address)
          return [target.id, { result: 'Failed', message: address.problem }];
        return [target.id, resultOf(publicationOf(target)) ?? { result: 'Pending', message: 'it was not probed yet' }];
      }),
    );
  }
  return verifyAllDeployed(plan, published, deployed?.targets, options);
}

function addressOf(template: string, id: string): { readonly url: string } | { readonly problem: string } {
  const slash = id.indexOf('/');
  try {
    return { url: probeAddress(template, { repository: id.slice(0, slash), package: id.slice(slash + 1) }) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

async function verifyAllDeployed(
  { metadata: { namespace = DEFAULT_NAMESPACE } }: Stored<WavePlan>,
  published: readonly TargetRecord[],
  names: readonly string[] | undefined,
  { client, store, delivered, repositoryOf }: Omit<VerifyTargetsOptions, 'probes'>,
): Promise<ReadonlyMap<string, Verification>> {
  const { items: targets } = await client.list(deliveryTargetKind, { namespace });
  const common = { names, targets, delivered: await packagesIn(namespace, { client, delivered }) };
  return new Map(
    published.map(({ id, revision: name, published: revision = 0 }) => {
      const repository = repositoryOf(repositoryOfId(id));
      // Of one that was deleted after its publication, only the name of its package is known.
      const key = { repository: repositoryOfId(id), package: id.slice(id.indexOf('/') + 1), workspace: '' };
      const { kptfile, record } = store.find(`${namespace}/${name}`) ?? {};
      const verification = verifyDeployed({ key, revision, kptfile, record }, { ...common, repository });
      // Others may select it too, by labels that are not known now.
      const isOpen = names !== undefined || (repository !== undefined && !isUnknown(namespace, id, store));
      return [id, verification.result === 'Verified' && !isOpen ? unopened(key.repository) : verification];
    }),
  );
}

/** A verification is final, and the deadline for it is no reason to take a revision back that is healthy everywhere. */
function unopened(repository: string): Verification {
  const message = `repository ${repository} is not open, so that it is not known which targets select the package`;
  return { result: 'Unreachable', message };
}

/** Reads the number of the revision of a target that is delivered, as it is now. Computed at the first call. */
export async function readDelivered(
  namespace: string,
  options: Pick<ObserveOptions, 'client' | 'delivered'>,
): Promise<(id: string) => number | undefined> {
  const packages = await packagesIn(namespace, options);
  let highest: ReadonlyMap<string, number> | undefined;
  return (id) => {
    highest ??= packages.highestIn(namespace);
    return highest.get(id);
  };
}

async function packagesIn(
  namespace: string,
  { client, delivered }: Pick<ObserveOptions, 'client' | 'delivered'>,
): Promise<DeliveredPackages> {
  return delivered ?? DeliveredPackages.from((await client.list(packageDeliveryKind, { namespace })).items);
}
