import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import type { EventRecorder } from '../../../../src/controller/event-recorder.ts';
import type { Manager } from '../../../../src/controller/manager.ts';
import type { Clock } from '../../../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import type { Client } from '../../../../src/resource/client/client.ts';
import { ipPrefixKind } from '../../../../src/resource/kinds/ipam/ipam.ts';
import { revisionController } from '../../revision-controller.ts';
import { isIpClaim, statusOf } from './ip-claim.ts';
import { type IpamOptions, ipamResolver } from './ipam-resolver.ts';

export const CLAIM_TYPE = 'ipam.resource.nephio.org/v1alpha1.IPClaim.';

export interface ClaimText {
  readonly spec?: object;
  readonly annotations?: Record<string, string>;
  readonly status?: object;
  readonly namespace?: string;
}

/** The text of a claim against network instance `vpc`. */
export function claimText(name: string, { spec = {}, annotations, status, namespace }: ClaimText = {}): string {
  return [
    'apiVersion: ipam.resource.nephio.org/v1alpha1',
    'kind: IPClaim # made by hand',
    // Without absent fields.
    `metadata: ${JSON.stringify({ name, namespace, annotations })}`,
    `spec: ${JSON.stringify({ kind: 'network', networkInstance: { name: 'vpc' }, ...spec })}`,
    ...(status === undefined ? [] : [`status: ${JSON.stringify(status)}`]),
    '',
  ].join('\n');
}

interface Parts {
  readonly client: Client;
  readonly store: RevisionStore;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
}

/** Resolver and controller under test, and what they wrote into the packages. */
export function ipamBench({ client, store, clock, recorder }: Parts) {
  const controller = (options: Partial<IpamOptions> = {}) => {
    const { resolver, sources } = ipamResolver({ store, client, clock, ...options });
    return revisionController({
      ...{ client, store, clock, recorder, sources },
      resolvers: [resolver],
      maxConcurrentReconciles: 8,
    });
  };
  return {
    controller,
    pool: (
      name: string,
      prefix: string,
      labels: Record<string, string> = { 'nephio.org/gateway': 'true' },
      instance = 'vpc',
    ) =>
      client.create(ipPrefixKind, {
        metadata: { name },
        spec: { kind: 'network', networkInstance: { name: instance }, prefix, labels },
      }),
    /** A controller without the memory of earlier ones. */
    reconciler: (options: Partial<IpamOptions> = {}) => {
      const { reconcile } = controller(options);
      return (name: string) =>
        reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    },
    startIn: async (manager: Manager) => {
      manager.addController(controller());
      await manager.start();
      await manager.idle();
    },
    /** The condition of a claim. */
    condition: (revision: string, name: string) => {
      const { kptfile } = store.get(revision);
      return kptfile === undefined ? undefined : conditionsOf(kptfile).get(CLAIM_TYPE + name);
    },
    /** Name and value of the claims of a revision. */
    addresses: async (revision: string): Promise<Record<string, unknown>> => {
      const objects = (await store.content(revision)).objects().filter(isIpClaim);
      return Object.fromEntries(objects.map((object) => [object.name, statusOf(object).prefix]));
    },
  };
}
