import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { mapLimited } from '../../../src/foundation/concurrency/map-limited.ts';
import { messageOf } from '../../../src/foundation/sluice-error.ts';
import { isDecided } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../../src/resource/kinds/sluice/delivery/package-delivery.ts';
import type { WavePlan } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import type { WaveTarget } from '../../../src/resource/kinds/sluice/wave/wave-target.ts';
import { parseDuration } from '../../../src/resource/object/duration.ts';
import { DEFAULT_NAMESPACE, type Stored } from '../../../src/resource/object/object.ts';
import type { TargetObservation, Verification } from '../../../src/rollout/wave/observation.ts';
import { isFinal, type PlanState, type TargetRecord } from '../../../src/rollout/wave/plan-state.ts';
import type { Selection } from '../select-revisions.ts';
import { type Probe, probeAddress, verifyByProbe } from './probe-target.ts';
import { verifyCondition, verifyDeployed } from './verify-target.ts';

export interface ObserveOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'findRepository'>;
  /** The objects of delivered packages, from an informer. Default: they are listed for each observation. */
  readonly delivered?: DeliveredPackages | undefined;
  readonly probe: Probe;
  readonly monotonic: () => number;
}

const MAX_PROBES = 16;
const VERIFIABLE: ReadonlySet<string> = new Set(['Approved', 'Verified', 'Failed', 'Unreachable']);

/** Results of probes, which are not repeated before their interval has passed. Forgotten with the process. */
export class ProbeResults {
  readonly #results = new Map<string, { readonly atMs: number; readonly result: Verification }>();

  /** The results for these addresses; those that are due are fetched. */
  async read(
    urls: ReadonlySet<string>,
    intervalMs: number,
    { probe, monotonic }: Pick<ObserveOptions, 'probe' | 'monotonic'>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Verification>> {
    for (const url of this.#results.keys()) if (!urls.has(url)) this.#results.delete(url);
    const due = [...urls].filter((url) => monotonic() - (this.#results.get(url)?.atMs ?? -Infinity) >= intervalMs);
    await mapLimited(due, MAX_PROBES, async (url) => {
      const result = await verifyByProbe(probe, url, signal);
      this.#results.set(url, { atMs: monotonic(), result });
    });
    return new Map([...this.#results].map(([url, { result }]) => [url, result]));
  }
}

/** What is known of the recorded revision of a target, without its verification. */
export function observeRevision(
  { metadata: { namespace = DEFAULT_NAMESPACE } }: WavePlan,
  target: TargetRecord,
  selection: Selection,
  store: ObserveOptions['store'],
): TargetObservation {
  if (isUnknown(namespace, target.id, store)) {
    const repository = repositoryOf(target.id);
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
  return store.findRepository(`${namespace}/${repositoryOf(id)}`) === undefined;
}

export function repositoryOf(id: string): string {
  return id.slice(0, id.indexOf('/'));
}

/** The verification of each target of the plan that is published. */
export async function verifyTargets(
  plan: Stored<WavePlan>,
  state: PlanState,
  objects: ReadonlyMap<string, Stored<WaveTarget>>,
  options: ObserveOptions,
  probes: ProbeResults,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Verification>> {
  const { deployed, condition, http } = plan.spec.verification;
  const published = [...state.targets.values()].filter(
    (target) => target.published !== undefined && VERIFIABLE.has(target.phase),
  );
  if (isFinal(state.phase) || published.length === 0) return new Map();
  if (condition !== undefined)
    return new Map(
      published.flatMap(({ id, published: number = 0 }) => {
        const object = objects.get(id);
        return object === undefined ? [] : [[id, verifyCondition(object, condition.type, number)] as const];
      }),
    );
  if (http !== undefined) {
    const addresses = new Map(published.map(({ id }) => [id, addressOf(http.url, id)]));
    const urls = new Set([...addresses.values()].flatMap((address) => ('url' in address ? address.url : [])));
    const results = await probes.read(urls, parseDuration(http.interval) ?? 0, options, signal);
    return new Map(
      [...addresses].map(([id, address]): [string, Verification] => {
        if ('problem' in address) return [id, { result: 'Failed', message: address.problem }];
        return [id, results.get(address.url) ?? { result: 'Pending', message: 'it was not probed yet' }];
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
  { client, delivered }: ObserveOptions,
): Promise<ReadonlyMap<string, Verification>> {
  const { items: targets } = await client.list(deliveryTargetKind, { namespace });
  const packages = await packagesIn(namespace, { client, delivered });
  return new Map(
    published.map(({ id, published: revision = 0 }) => {
      const slash = id.indexOf('/');
      const key = { repository: id.slice(0, slash), package: id.slice(slash + 1), workspace: '' };
      return [id, verifyDeployed({ key, revision }, names, targets, packages)];
    }),
  );
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
