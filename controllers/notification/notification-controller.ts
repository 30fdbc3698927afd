import type { ControllerOptions } from '../../src/controller/controller.ts';
import { EventRecorder } from '../../src/controller/event-recorder.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { RateLimit } from '../../src/foundation/concurrency/rate-limit.ts';
import { isSluiceError, messageOf } from '../../src/foundation/sluice-error.ts';
import { backoffDelay } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { measurement } from '../../src/foundation/time/measurement.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { type Notification, notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { EventDeduplicator } from '../event-deduplicator.ts';
import { EventFeed } from './event-feed.ts';
import { selectsLabels } from './match-event.ts';
import { messageOfEvent } from './message.ts';
import { type PendingEvent, pendingEvents } from './pending-events.ts';
import { type Progress, progressFields, progressOf, withDone, withEverythingBefore } from './progress.ts';
import type { Attempt, Post } from './receiver.ts';
import { redact } from './redact.ts';
import { secretProblem } from './secret-value.ts';
import { sendWebhook } from './send-webhook.ts';
import { setCommitStatus } from './set-commit-status.ts';

const NOTIFICATION_ACTOR = 'controller:notification';

export interface NotificationOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly post: Post;
  readonly random?: () => number;
  /** Milliseconds for one request. Default 10,000. */
  readonly timeoutMs?: number;
  /** Default: a new recorder on `client`. */
  readonly recorder?: EventRecorder;
}

export type NotificationOutcome = 'sent' | 'failed' | 'given_up' | 'dropped';

export const notificationAttempts = measurement<{
  readonly receiver: string;
  readonly outcome: NotificationOutcome;
  readonly count: number;
}>('sluice:notification');

/** Workers mostly wait for receivers; a slow receiver occupies one of them for the time of a request. */
const MAX_CONCURRENT = 256;
const MAX_CONCURRENT_PER_NAMESPACE = 16;
/** Messages of one reconciliation; others follow in the next one. */
const MAX_MESSAGES_AT_ONCE = 20;
/** With the pauses below about half an hour. */
const MAX_ATTEMPTS = 12;
const BASE_DELAY_MS = 1000;
const MAX_DELAY_MS = 300_000;
const MAX_ERROR_CHARACTERS = 500;

/** Reason of a Notification whose receiver needs a Secret that cannot be used. */
const UNUSABLE = 'SecretUnusable';
const READY = { status: 'True', reason: 'Sending', message: '' } as const;
/** Changes of Secrets are not watched. Milliseconds. */
const SECRET_CHECK_MS = 60_000;

/** What is kept of a Notification between reconciliations. */
interface SenderState {
  readonly uid: string;
  readonly limit: RateLimit;
  /** The one that the progress is for. */
  generation: number | undefined;
  progress: Progress;
  /** Of the event that is first in line. */
  attempts: number;
  /** No attempt before this time; milliseconds of running time. */
  notBefore: number;
}

type Fields = Partial<Omit<NonNullable<Notification['status']>, 'conditions'>>;

/** Sends events about objects of Sluice to the receivers of Notifications. */
export function notificationController(options: NotificationOptions): ControllerOptions {
  const { clock, post, random = Math.random, timeoutMs = 10_000 } = options;
  const client = options.client.as({ name: NOTIFICATION_ACTOR }, 'controller');
  const events = new EventDeduplicator(
    options.recorder ?? new EventRecorder({ client, clock, component: NOTIFICATION_ACTOR }),
  );
  const states = new Map<string, SenderState>();
  const feed = new EventFeed();

  return {
    name: 'notification',
    sources: [feed.source],
    maxConcurrentReconciles: MAX_CONCURRENT,
    namespaceShare: { most: MAX_CONCURRENT_PER_NAMESPACE, mostFailing: MAX_CONCURRENT_PER_NAMESPACE },
    reconcileTimeoutMs: 300_000,
    maxDelayMs: 60_000,
    async reconcile(key, { signal }): Promise<ReconcileResult | undefined> {
      let notification = await client.find(notificationKind, key, { signal });
      if (notification === undefined || notification.metadata.deletionTimestamp !== undefined) return forget(key);
      const state = stateOf(notification);
      if (notification.spec.suspend === true) {
        state.progress = withEverythingBefore(state.progress, clock.now());
        const message = 'spec.suspend is set; nothing is sent';
        await write(notification, state, { status: 'False', reason: 'Suspended', message }, {});
        return undefined;
      }
      for (let round = 0; round < MAX_MESSAGES_AT_ONCE; round += 1) {
        signal.throwIfAborted();
        const { waiting, dropped, progress } = pendingEvents(
          notification,
          feed.inNamespace(notification.metadata.namespace ?? DEFAULT_NAMESPACE),
          state.progress,
          clock.now(),
        );
        state.progress = progress;
        if (dropped > 0) notification = await reportDropped(notification, state, dropped);
        const [next] = waiting;
        if (next === undefined) {
          const problem = await secretProblem(client, notification, signal);
          if (problem !== undefined) await reportUnusable(notification, state, problem);
          else
            await write(
              notification,
              state,
              isUsableAgain(notification) ? READY : undefined,
              waitingField(notification, 0),
            );
          return problem === undefined
            ? undefined
            : { requeueAfter: SECRET_CHECK_MS, reason: 'the Secrets of the receiver' };
        }
        const now = clock.monotonic();
        if (state.notBefore > now)
          return { requeueAfter: state.notBefore - now, reason: 'the next attempt to reach the receiver' };
        if (!(await selectsLabels(next.rules, () => labelsOf(next, signal)))) {
          state.progress = withDone(state.progress, next);
          continue;
        }
        const pause = state.limit.take(notification.spec.maxPerMinute, now);
        if (pause > 0) return { requeueAfter: pause, reason: 'spec.maxPerMinute' };
        const attempt = await send(notification, next, signal);
        notification = await settle(notification, state, next, attempt, waiting.length);
      }
      return { requeueAfter: 0, reason: 'more events' };
    },
  };

  function forget(key: ObjectKey): undefined {
    states.delete(keyText(key));
    events.forget(key);
  }

  function stateOf({ metadata, spec, status }: Stored<Notification>): SenderState {
    const key = keyText(keyOf({ metadata }));
    const now = clock.now();
    let state = states.get(key);
    if (state?.uid !== metadata.uid) {
      const progress = progressOf(status, metadata.creationTimestamp, now);
      state = {
        ...{ uid: metadata.uid, limit: new RateLimit(spec.maxPerMinute, clock.monotonic()), progress },
        ...{ attempts: 0, notBefore: 0, generation: status?.observedGeneration ?? metadata.generation },
      };
      states.set(key, state);
    }
    if (state.generation !== metadata.generation) {
      state.generation = metadata.generation;
      // Another receiver may work. What was not selected before does not follow now, unless events wait for the receiver.
      state.notBefore = 0;
      state.attempts = 0;
      if (findCondition(status?.conditions, 'Ready')?.reason !== 'Failing')
        state.progress = withEverythingBefore(state.progress, now);
    }
    return state;
  }

  async function send(
    { metadata: { namespace = DEFAULT_NAMESPACE }, spec }: Stored<Notification>,
    { event }: PendingEvent,
    outer: AbortSignal,
  ): Promise<Attempt> {
    const signal = AbortSignal.any([outer, AbortSignal.timeout(timeoutMs)]);
    const context = { client, post, namespace, now: clock.now(), signal };
    const message = messageOfEvent(event);
    try {
      if (spec.webhook !== undefined) return await sendWebhook(spec.webhook, message, context);
      if (spec.commitStatus !== undefined) return await setCommitStatus(spec.commitStatus, message, context);
      return { outcome: 'rejected', message: 'neither spec.webhook nor spec.commitStatus is set' };
    } catch (error) {
      outer.throwIfAborted();
      return { outcome: 'failed', message: redact(messageOf(error), MAX_ERROR_CHARACTERS) };
    }
  }

  /** Records the outcome of an attempt, and when the next one may begin. */
  async function settle(
    notification: Stored<Notification>,
    state: SenderState,
    pending: PendingEvent,
    attempt: Attempt,
    waiting: number,
  ): Promise<Stored<Notification>> {
    const { status } = notification;
    const now = clock.now();
    const done = () => {
      state.progress = withDone(state.progress, pending);
      state.attempts = 0;
      state.notBefore = 0;
    };
    if (attempt.outcome === 'skipped') {
      done();
      return notification;
    }
    if (attempt.outcome === 'sent') {
      done();
      count(notification, 'sent');
      events.forget(keyOf(notification));
      const fields = { waiting: waiting - 1, sent: (status?.sent ?? 0) + 1, lastSent: new Date(now).toISOString() };
      return write(notification, state, { status: 'True', reason: 'Sending', message: '' }, fields);
    }
    const { message } = attempt;
    state.attempts += 1;
    const isGivenUp = attempt.outcome === 'rejected' || state.attempts >= MAX_ATTEMPTS;
    const { reason, object } = messageOfEvent(pending.event);
    const about = `${reason} of ${object.kind} ${object.name}`;
    const fields: Fields = {
      waiting: isGivenUp ? waiting - 1 : waiting,
      lastError: { time: new Date(now).toISOString(), event: about, message },
    };
    if (isGivenUp) done();
    else {
      const delay = backoffDelay(state.attempts, { base: BASE_DELAY_MS, max: MAX_DELAY_MS, random });
      const asked = attempt.outcome === 'failed' ? (attempt.retryAfterMs ?? 0) : 0;
      state.notBefore = clock.monotonic() + Math.max(delay, Math.min(asked, MAX_DELAY_MS));
    }
    count(notification, isGivenUp ? 'given_up' : 'failed');
    events.record(notification, 'Warning', isGivenUp ? 'NotSent' : 'Failing', `${about}: ${message}`, 'receiver');
    return write(
      notification,
      state,
      { status: 'False', reason: 'Failing', message },
      {
        ...fields,
        ...(isGivenUp ? { failed: (status?.failed ?? 0) + 1 } : {}),
      },
    );
  }

  async function reportUnusable(notification: Stored<Notification>, state: SenderState, message: string) {
    const ready = findCondition(notification.status?.conditions, 'Ready');
    events.record(notification, 'Warning', UNUSABLE, message, 'secrets');
    const isKnown = ready?.reason === UNUSABLE && ready.message === message;
    if (!isKnown) await write(notification, state, { status: 'False', reason: UNUSABLE, message }, {});
  }

  async function reportDropped(
    notification: Stored<Notification>,
    state: SenderState,
    dropped: number,
  ): Promise<Stored<Notification>> {
    count(notification, 'dropped', dropped);
    const message = `${dropped} events were dropped: too many wait; select fewer, or raise spec.maxPerMinute`;
    events.record(notification, 'Warning', 'Dropped', message, 'dropped');
    return write(notification, state, undefined, { dropped: (notification.status?.dropped ?? 0) + dropped });
  }

  /** Without a condition the last one stays; a Notification without any is ready. */
  async function write(
    notification: Stored<Notification>,
    state: SenderState,
    condition: Omit<NewCondition, 'type'> | undefined,
    fields: Fields,
  ): Promise<Stored<Notification>> {
    const { generation } = notification.metadata;
    const { observedGeneration } = notification.status ?? {};
    const ready = findCondition(notification.status?.conditions, 'Ready');
    const isNew = ready === undefined || observedGeneration !== generation;
    if (condition === undefined && !isNew && Object.keys(fields).length === 0) return notification;
    const next = condition ?? (isNew ? ({ status: 'True', reason: 'Sending', message: '' } as const) : undefined);
    try {
      return await writeStatus(client, notificationKind, notification, {
        conditions: next === undefined ? [] : [{ type: 'Ready', ...next }],
        fields: { ...fields, ...progressFields(state.progress), observedGeneration: generation },
        now: clock.now(),
      });
    } catch (error) {
      // Deleted meanwhile, which wakes this controller again.
      if (!isSluiceError(error, 'Conflict') && !isSluiceError(error, 'NotFound')) throw error;
      return notification;
    }
  }

  async function labelsOf({ event }: PendingEvent, signal: AbortSignal) {
    const { kind, namespace = DEFAULT_NAMESPACE, name = '' } = event.involvedObject;
    for (const known of [deliveryTargetKind, repositoryKind, packageRevisionKind])
      if (known.kind === kind)
        // The kinds have different types of objects; only the metadata is read.
        return (await client.find(known as typeof deliveryTargetKind, { namespace, name }, { signal }))?.metadata
          .labels;
    return undefined;
  }
}

function count({ spec }: Notification, outcome: NotificationOutcome, number = 1): void {
  const receiver = spec.webhook?.format ?? 'CommitStatus';
  notificationAttempts.publish({ receiver, outcome, count: number });
}

function isUsableAgain({ status }: Stored<Notification>): boolean {
  return findCondition(status?.conditions, 'Ready')?.reason === UNUSABLE;
}

/** Empty if the status has this number. */
function waitingField({ status }: Stored<Notification>, waiting: number): Fields {
  return (status?.waiting ?? 0) === waiting ? {} : { waiting };
}
