import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import type { Source } from '../../src/controller/source.ts';
import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { backoffDelay } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { measurement } from '../../src/foundation/time/measurement.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { attemptOf, type Post } from '../notification/receiver.ts';
import { redact } from '../notification/redact.ts';
import { secretValue } from '../notification/secret-value.ts';
import { annotateEngine } from './annotate-engine.ts';
import type { ChangedFolders } from './changed-folders.ts';
import { pushMessage } from './push-message.ts';

const SYNC_TRIGGER_ACTOR = 'controller:sync-trigger';

/** A connection to the cluster of an engine, for one trigger. */
export interface EngineCluster {
  readonly client: Client;
  close(): Promise<void>;
}

export interface SyncTriggerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly post: Post;
  /** What the commits of the delivery controller of this process changed. */
  readonly changedFolders: ChangedFolders;
  /** Throws what prevents access, with the next step. */
  readonly openCluster: (target: Stored<DeliveryTarget>, signal: AbortSignal) => Promise<EngineCluster>;
  readonly random?: () => number;
  /** Milliseconds for one attempt. Default 10,000. */
  readonly timeoutMs?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

export const syncTriggers = measurement<{
  readonly type: string;
  readonly outcome: 'sent' | 'failed' | 'given_up';
}>('sluice:sync-trigger');

/** Attempts for one commit, within about a minute: then the engine finds it by itself. */
const MAX_ATTEMPTS = 7;
const BASE_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
const MAX_ERROR_CHARACTERS = 500;

/** A commit that an engine does not know of yet. */
interface PendingPush {
  readonly before: string | undefined;
  readonly after: string;
  attempts: number;
  notBefore: number;
}

/** Starts a sync of the engine of a target after each push of this process. It never changes a delivery or its status. */
export function syncTriggerController(options: SyncTriggerOptions): ControllerOptions {
  const { clock, post, openCluster, random = Math.random, timeoutMs = 10_000 } = options;
  const client = options.client.as({ name: SYNC_TRIGGER_ACTOR }, 'controller');
  const recorder = options.recorder ?? new EventRecorder({ client, clock, component: SYNC_TRIGGER_ACTOR });
  /** The newest commit of each target that is to be announced, by key. */
  const pending = new Map<string, PendingPush>();

  const source: Source<ObjectKey> = {
    start: ({ informer, enqueue }) =>
      informer(deliveryTargetKind).addHandler((event) => {
        const key = keyOf(event.object);
        if (event.type === 'delete') {
          pending.delete(keyText(key));
          options.changedFolders.take(key);
          return;
        }
        // Commits from before the start are known to the engine, or it finds them by itself.
        if (event.type !== 'update' || event.object.spec.engine?.trigger === undefined) return;
        const [before, after] = [event.old.status?.lastCommit, event.object.status?.lastCommit];
        if (after === undefined || before === after) return;
        pending.set(keyText(key), { before, after, attempts: 0, notBefore: 0 });
        enqueue(key);
      }),
  };

  return {
    name: 'sync-trigger',
    sources: [source],
    // Attempts mostly wait for the network; one that hangs occupies a worker until its time is over.
    maxConcurrentReconciles: 64,
    namespaceShare: { most: 16, mostFailing: 4 },
    reconcileTimeoutMs: 60_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      const id = keyText(key);
      const push = pending.get(id);
      if (push === undefined) return undefined;
      const wait = push.notBefore - clock.monotonic();
      if (wait > 0) return { requeueAfter: wait, reason: 'the next attempt to start a sync' };
      const target = await client.find(deliveryTargetKind, key, { signal });
      const type = target?.spec.engine?.trigger?.type;
      if (target === undefined || type === undefined) {
        pending.delete(id);
        return undefined;
      }
      try {
        await trigger(target, push, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
        syncTriggers.publish({ type, outcome: 'sent' });
        if (pending.get(id) === push) pending.delete(id);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        return failed(target, type, push, redact(messageOf(error), MAX_ERROR_CHARACTERS));
      }
    },
  };

  function failed(target: Stored<DeliveryTarget>, type: string, push: PendingPush, message: string) {
    const id = keyText(keyOf(target));
    push.attempts += 1;
    const isLast = push.attempts >= MAX_ATTEMPTS;
    syncTriggers.publish({ type, outcome: isLast ? 'given_up' : 'failed' });
    if (push.attempts === 1 || isLast) {
      const next = isLast ? 'the engine finds the commit at its next poll' : 'it is tried again';
      const text = `cannot start a sync of commit ${push.after.slice(0, 12)}: ${message}; ${next}`;
      recorder.record(target, 'Warning', 'SyncNotTriggered', text);
    }
    if (isLast) {
      if (pending.get(id) === push) pending.delete(id);
      return undefined;
    }
    const delay = backoffDelay(push.attempts, { base: BASE_DELAY_MS, max: MAX_DELAY_MS, random });
    push.notBefore = clock.monotonic() + delay;
    return { requeueAfter: delay, reason: 'the next attempt to start a sync' };
  }

  async function trigger(target: Stored<DeliveryTarget>, push: PendingPush, signal: AbortSignal): Promise<void> {
    const { engine, git } = target.spec;
    const settings = engine?.trigger;
    if (settings?.type === 'Webhook') {
      const { namespace = DEFAULT_NAMESPACE } = target.metadata;
      const { url = '', secretRef } = settings;
      const use = 'which spec.engine.trigger.secretRef refers to';
      const secret = secretRef === undefined ? undefined : await secretValue(client, namespace, secretRef, use, signal);
      const { body, headers } = pushMessage({ ...push, repo: git.repo, branch: git.branch }, secret);
      const response = await post({ url, headers, body, signal });
      const receiver = URL.parse(url)?.origin ?? 'the receiver';
      const attempt = attemptOf(response, receiver, 'the Secret of spec.engine.trigger.secretRef');
      if ('message' in attempt) throw new SluiceError('Unavailable', attempt.message);
      return;
    }
    const key = keyOf(target);
    const folders = options.changedFolders.take(key);
    const cluster = await openCluster(target, signal);
    try {
      await annotateEngine(target, cluster.client, clock.now(), signal, folders);
    } catch (error) {
      options.changedFolders.add(key, folders);
      throw error;
    } finally {
      await cluster.close();
    }
  }
}
