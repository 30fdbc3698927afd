import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { type PolicyScope, pendingRevisions } from './pending-revisions.ts';
import { type ApplicableResolvers, isPending } from './readiness.ts';

/** Options that the controllers of pending revisions share. */
export interface PendingOptions {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'onPromotion'>;
  /** Where policies and freezes apply. */
  readonly scope?: PolicyScope;
  readonly clock: Clock;
  /** Names of the resolvers that apply to a package. Default: those that the record names. */
  readonly applicableResolvers?: ApplicableResolvers;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

type ReconcilePending = (object: Stored<PackageRevision>) => Promise<ReconcileResult | undefined>;

/** A controller of drafts and proposed revisions, with a client and events under the name of `actor`. */
export function onPending(name: string, actor: string, { clock, ...options }: PendingOptions) {
  const client = options.client.as({ name: actor }, 'controller');
  const events = new EventDeduplicator(options.recorder ?? new EventRecorder({ client, clock, component: actor }));
  const controller = (reconcile: ReconcilePending): ControllerOptions => ({
    name,
    sources: pendingRevisions(options.store, options.scope),
    maxConcurrentReconciles: 16,
    reconcileTimeoutMs: 20_000,
    reconcile: (key, { signal }) => {
      const work = async () => {
        const object = await client.find(packageRevisionKind, key);
        return object === undefined || !isPending(object) ? void events.forget(key) : reconcile(object);
      };
      return whileAllowed(work(), signal);
    },
  });
  return { client, events, controller };
}

/**
 * Waits for work until the signal aborts, and rejects with its reason then. The work itself continues, since a write to a hanging
 * repository cannot be undone, but other repositories must not wait for it.
 */
function whileAllowed<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
