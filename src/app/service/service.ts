import { join } from 'node:path';
import type { SelectableKinds } from '../../../controllers/package-variant/selectable-kind.ts';
import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import type { ReconcileRecord } from '../../controller/controller.ts';
import { EventRecorder, flushEvents } from '../../controller/event-recorder.ts';
import { Manager } from '../../controller/manager.ts';
import type { ProcessLock } from '../../foundation/files/process-lock.ts';
import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import { sleep } from '../../foundation/time/backoff.ts';
import { unlessRepeated } from '../../foundation/time/unless-repeated.ts';
import { freezesAt } from '../../package/model/policy/approval-rules.ts';
import type { Client } from '../../resource/client/client.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { keyText, type ObjectKey } from '../../resource/object/object.ts';
import { HealthChecks, Heartbeat } from '../../server/health/health-checks.ts';
import type { Listener } from '../../server/listener.ts';
import type { Metrics } from '../../server/metrics/metrics.ts';
import type { PathHandler } from '../../server/request/path-handler.ts';
import { addControllers, type ControllerChoice } from '../controllers/controllers.ts';
import type { Session } from '../session/session.ts';
import { webhookReceivers } from './app-webhooks.ts';
import { attributePush, unreadablePush } from './attribute-push.ts';
import { followFreezes } from './follow-freezes.ts';
import { followRules } from './follow-rules.ts';
import { InitialOpenings } from './initial-openings.ts';
import type { ListenAddress } from './listen-address.ts';
import { eventOfStep } from './log/event-of-step.ts';
import { logChanges } from './log/log-changes.ts';
import type { LogEntry, LogSink } from './log/log-entry.ts';
import { narrateEvent, repeatedWarnings } from './log/narrate-event.ts';
import { type ReportedSteps, reportsStep } from './log/step-reporter.ts';
import { Recovery } from './recovery.ts';
import type { ApiParts, ServedApi } from './serve-api.ts';
import { userMayCreate, userRights } from './user-rights.ts';

export interface ServiceOptions extends ControllerChoice {
  readonly session: Session;
  /** Of the data folder. Absent in a cluster, where a Lease elects the process, and the events that it records are logged elsewhere. */
  readonly lock?: ProcessLock;
  readonly log: LogSink;
  /** Opens the API; absent if none is served. */
  readonly serve?: ((parts: ApiParts) => Promise<ServedApi>) | undefined;
  /** Syncs that something else than an object requests, such as a webhook. */
  readonly requests?: SyncRequests;
  /** In a cluster: for the metrics. */
  readonly leadership?: (() => ReadonlyMap<string, boolean>) | undefined;
  /** In a cluster: whether statements can be signed, for the metrics. */
  readonly canSign?: () => boolean;
  /** In a cluster: ids of the repositories that lists of packages fail for; for the metrics. */
  readonly unread?: (() => Iterable<string>) | undefined;
  /** Default: health checks of its own. */
  readonly health?: HealthChecks;
  /** The cluster that Sluice runs in. */
  readonly cluster?: Client;
  /** In a cluster: the kinds whose objects variants inject and sets select. */
  readonly kinds?: SelectableKinds;
  /** False if the caller has a check of its own for when it is ready. Default true. */
  readonly reportsReady?: boolean;
  /** Separate address of the webhooks; see RunOptions. */
  readonly webhooks?: ListenAddress;
  /** Given if each request waits by itself for the repositories that it needs. Default: it serves once all of them were read. */
  readonly openings?: InitialOpenings | undefined;
  /** Aborts when the user wants it to end. */
  readonly signal: AbortSignal;
  /** Default `all`. */
  readonly reportedSteps?: ReportedSteps;
  /** Called when the service cannot continue. */
  readonly onLost: (message: string) => void;
}

/** Milliseconds between signs of life, and checks of the lock. */
const BEAT_INTERVAL_MS = 1000;
/**
 * Milliseconds that running work has to end by itself; together with all other steps a stop takes at most ten seconds, or slightly
 * more if work hangs.
 */
const STOP_GRACE = 5000;
/** Failures in a row of an item that lost a race; one that fails for another reason is not waited for. */
const RACES = 12;
/** These controllers emit events for their objects, so the service does not log their failures again. */
const REPORTING: ReadonlySet<string> = new Set(['repository', 'delivery', 'deployment-status']);

/** All controllers on one data folder, and a log of what they move. */
export class SluiceService {
  readonly manager: Manager;
  readonly #options: ServiceOptions;
  /** Error of the last reconciliation of an item, if it failed. */
  readonly #errors = new Map<string, unknown>();
  /** Number of consecutive write conflicts of an item. */
  readonly #races = new Map<string, number>();
  readonly #openings: InitialOpenings;
  /** Repositories with a push whose message was too long to read its pusher. */
  readonly #withUnreadable = new Set<string>();
  readonly #health: HealthChecks;
  readonly #heartbeat: Heartbeat;
  readonly #events: EventRecorder;
  readonly #requests: SyncRequests;
  /** The same for delivery targets. */
  readonly #targetRequests: SyncRequests;
  #started = false;
  #api: ServedApi | undefined;
  #webhooks: Listener | undefined;
  #metrics: Metrics | undefined;
  #unsubscribe: (() => void)[] = [];

  constructor(options: ServiceOptions) {
    const { session } = options;
    this.#options = options;
    this.#health = options.health ?? new HealthChecks();
    const { client, clock, readers, remoteTimeoutMs } = session;
    const { repositories } = readers;
    this.#openings = options.openings ?? new InitialOpenings({ clock, repositories, timeoutMs: remoteTimeoutMs });
    const onError = (error: unknown) => this.#warn('Error', 'events', messageOf(error));
    this.#events = new EventRecorder({
      client: client.as({ name: 'sluice' }, 'api'),
      clock,
      component: 'sluice',
      onError,
    });
    this.#heartbeat = new Heartbeat(() => session.clock.now(), 60_000);
    this.#health.add('livez', 'loop', this.#heartbeat.check);
    this.#health.add('livez', 'workers', () => {
      const stuck = this.manager.stuck();
      if (stuck.length > 0) throw new Error(`stuck: ${stuck.slice(0, 5).join(', ')}`);
    });
    if (options.reportsReady !== false)
      this.#health.add('readyz', 'controllers', () => {
        if (!this.#started) throw new Error('they start');
      });
    const isNews = unlessRepeated(clock);
    this.manager = new Manager({
      client: session.client,
      clock: session.clock,
      onReconcile: (record) => this.#note(record),
      onError: (error, where) => {
        // An informer that lists again has lost no events.
        if (isSluiceError(error, 'Expired')) return;
        const message = messageOf(error);
        // An informer without the right is tried again for ever, since it may be granted.
        if (!isSluiceError(error, 'Refused') || isNews(`${where}: ${message}`)) this.#warn('Error', where, message);
      },
    });
    this.manager.add({ name: 'heartbeat', start: (signal) => void this.#beat(signal) });
    // What signatures say can change revisions, and with them what controllers have to do.
    const busy = () => session.store.repositories().some(({ isChecking }) => isChecking);
    this.manager.add({ name: 'signatures', start: () => undefined, busy });
    const onProblem = (revision: string, message: string) => this.#warn('Problem', revision, message);
    this.#requests = options.requests ?? new SyncRequests(clock);
    this.#targetRequests = new SyncRequests(clock);
    const onWanted = (listener: (key: ObjectKey) => void) => this.#openings.onWanted(listener);
    const hasPeer = options.reportedSteps !== undefined && options.reportedSteps !== 'all';
    const mayUpdate = (subResource: 'approval' | 'status') =>
      options.serve === undefined ? undefined : userRights(() => this.#api?.authorizer, subResource);
    const mayCreate = options.serve === undefined ? undefined : userMayCreate(() => this.#api?.authorizer);
    const rights = { mayApprove: mayUpdate('approval'), maySetConditions: mayUpdate('status'), mayCreate };
    session.mayApprove = rights.mayApprove;
    session.whenOpened = (namespace) =>
      this.#openings.whenAllRead((key) => key.namespace === namespace, options.signal);
    addControllers(this.manager, session, {
      ...options,
      ...{ onProblem, requests: this.#requests, targetRequests: this.#targetRequests, onWanted, hasPeer, ...rights },
    });
  }

  async start(): Promise<void> {
    const { session, log, lock } = this.#options;
    const now = () => session.clock.now();
    const isRepeated = repeatedWarnings(now());
    const recovery = lock?.abandonedBy === undefined ? undefined : new Recovery(session, lock.abandonedBy);
    if (recovery !== undefined) log(recovery.begun());
    this.#unsubscribe.push(
      logChanges(
        session,
        (entry) => {
          log(entry);
          this.#recordStep(entry);
        },
        (changes) => recovery?.count(changes),
      ),
    );
    if (lock !== undefined)
      this.#unsubscribe.push(
        this.manager.informer(eventKind).addHandler((event) => {
          // Events of an earlier process were printed by that process.
          if (event.type === 'delete' || session.isUnchangedSinceStart(event.object)) return;
          if (isRepeated(event.object)) return;
          const entry = narrateEvent(event.object, now());
          if (entry !== undefined) log(entry);
        }),
      );
    await this.manager.start();
    this.#started = true;
    const { clock: ofFreezes } = session;
    this.#unsubscribe.push(
      followFreezes({ freezes: session.readers.freezeTimes, clock: ofFreezes, log, events: this.#events }),
    );
    if (recovery !== undefined) this.#reportWhenFinished(recovery);
    const { serve, webhooks, signal, disabled, openings } = this.#options;
    if (serve === undefined && webhooks === undefined) return;
    // Clients that reconnect must see the packages that they knew, and not an Added event for each.
    if (openings === undefined && !disabled.includes('repository')) await this.#openings.finish(signal);
    if (signal.aborted) return;
    const { client, clock } = session;
    const { WebhookEndpoint } = await import('../../server/webhooks/webhook-endpoint.ts');
    const { SeenFile } = await import('../../server/webhooks/seen/seen-file.ts');
    const seenFile = new SeenFile(join(session.folder.path, 'cache', 'webhooks.db'), (error) =>
      this.#warn('Problem', 'webhooks', `cannot keep which messages were seen: ${messageOf(error)}`),
    );
    this.#unsubscribe.push(() => seenFile.close());
    const endpoint = new WebhookEndpoint({
      client: client.as({ name: 'sluice' }, 'api'),
      clock,
      isRegistered: (repository) => session.readers.repositories.get(repository) !== undefined,
      ...webhookReceivers(session.readers, { requests: this.#requests, targetRequests: this.#targetRequests }),
      seenFile,
      onPush: async (repository, push) => {
        // The message triggers a sync of the repository in any case.
        const problem = await attributePush(session, repository, push).catch(messageOf);
        if (problem !== undefined) this.#warn('Problem', keyText(repository), problem);
      },
      onUnreadablePush: async (repository, maxBytes) => {
        const key = keyText(repository);
        if (this.#withUnreadable.has(key)) return;
        const problem = await unreadablePush(session, repository, maxBytes).catch(messageOf);
        if (problem === undefined || this.#withUnreadable.has(key)) return;
        this.#withUnreadable.add(key);
        this.#warn('Problem', key, problem);
      },
    });
    if (serve !== undefined) await this.#serve(serve, endpoint.handle);
    if (webhooks !== undefined) await this.#serveWebhooks(webhooks, endpoint.handle);
  }

  /** The API is to be served, and is not yet. */
  get #isStarting(): boolean {
    return this.#options.serve !== undefined && this.#api === undefined;
  }

  /** Reports the recovery after a killed process, once all of it is done. */
  #reportWhenFinished(recovery: Recovery): void {
    const { log, signal } = this.#options;
    this.idle(signal).then(
      () => log(recovery.finished()),
      (error: unknown) => {
        if (!signal.aborted) this.#warn('Error', 'recovery', messageOf(error));
      },
    );
  }

  /** Controllers record their own steps; steps of users are recorded here. */
  #recordStep(entry: LogEntry): void {
    const event = eventOfStep(entry);
    const id = `${String(entry.fields?.namespace)}/${entry.subject}`;
    const revision = event === undefined ? undefined : this.#options.session.store.find(id);
    if (event === undefined || revision === undefined) return;
    const { reportedSteps = 'all', session } = this.#options;
    if (!reportsStep(reportedSteps, entry, revision, session.store.repositoryOf(revision).trust)) return;
    const { apiVersion, kind } = packageRevisionKind;
    const { namespace, name, uid } = revision;
    const metadata = { name, namespace, uid };
    this.#events.record({ apiVersion, kind, metadata }, event.type, event.reason, event.message);
  }

  async #serveWebhooks(address: ListenAddress, handle: PathHandler): Promise<void> {
    const { session, log } = this.#options;
    const { clock } = session;
    const { serveWebhooks } = await import('./serve-webhooks.ts');
    this.#webhooks = await serveWebhooks({
      ...{ address, clock, handle },
      onRequest: (record) => this.#metrics?.requests.record(record),
      warn: (subject, message) => this.#warn('Webhooks', subject, message),
    });
    const { url } = this.#webhooks;
    const message = 'POST /webhooks/git/<namespace>/<repository>';
    log({ at: clock.now(), level: 'info', event: 'Webhooks', subject: url, message, fields: { url } });
  }

  async #serve(open: NonNullable<ServiceOptions['serve']>, webhooks: PathHandler): Promise<void> {
    const { session, log, signal, openings } = this.#options;
    if (openings === undefined) session.endInitialPhase();
    else
      void openings.finish(signal).then(() => {
        if (!signal.aborted) session.endInitialPhase();
      });
    this.#unsubscribe.push(...followRules(this.manager, session));
    // The modules for serving are loaded only if they are needed: `--until-idle` does not serve.
    const [{ measure }, { NO_LOAD }] = await Promise.all([
      import('./measure.ts'),
      import('../../server/metrics/request-metrics.ts'),
    ]);
    const { metrics, stop } = measure({
      manager: this.manager,
      store: session.store,
      targets: () => session.readers.targets.list(),
      freezes: () => freezesAt(session.readers.allFreezes(), session.clock.now()),
      quota: session.objects.database?.quota,
      load: () => this.#api?.server.load ?? NO_LOAD,
      leadership: this.#options.leadership,
      canSign: this.#options.canSign,
      unread: this.#options.unread,
    });
    this.#unsubscribe.push(stop);
    this.#metrics = metrics;
    this.#api = await open({
      health: this.#health,
      paths: [metrics.paths],
      webhooks,
      onRequest: (record) => metrics.requests.record(record),
      warn: (subject, message) => this.#warn('Api', subject, message),
    });
    const { url, usage: message } = this.#api;
    log({ at: session.clock.now(), level: 'info', event: 'Serving', subject: url, message, fields: { url } });
  }

  /** Resolves when no work is queued, running or retrying; repeatedly failing and scheduled work is ignored. */
  async idle(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.session;
    for (;;) {
      await this.manager.idle({ signal, failureLimit: 1 });
      const retried = this.manager.failing().some(({ controller, key, failures }) => {
        const error = this.#errors.get(`${controller} ${key}`);
        return failures < RACES && (isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy'));
      });
      // What an event reports is logged too.
      if (!retried && !(await flushEvents())) return;
      if (!retried) continue;
      await sleep(clock, 20, signal);
      signal.throwIfAborted();
    }
  }

  /** Work that failed and is retried, with the reason. Repositories and targets report failures in their own status. */
  failing(): { readonly what: string; readonly message: string }[] {
    return this.manager
      .failing()
      .filter(({ controller }) => !REPORTING.has(controller))
      .map(({ controller, key }) => {
        const error = this.#errors.get(`${controller} ${key}`);
        return { what: `${controller} ${key}`, message: error === undefined ? 'failed' : messageOf(error) };
      });
  }

  /** Takes no more requests and no more work, and finishes what runs, each of them whatever becomes of the other. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    const ends = await Promise.allSettled([this.#api?.stop(), this.#webhooks?.stop(), this.manager.stop(STOP_GRACE)]);
    await this.#events.flush();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  #note(record: ReconcileRecord): void {
    this.#metrics?.controllers.record(record);
    const key = `${record.controller} ${record.key}`;
    const before = this.#errors.get(key);
    const { error } = record;
    const isOpen = () => this.#options.session.store.findRepository(record.key) !== undefined;
    if (record.controller === 'repository' && (error !== undefined || isOpen())) this.#openings.note(record.key);
    if (error === undefined) this.#errors.delete(key);
    else this.#errors.set(key, error);
    const lost = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy');
    // Until then the rights of users are not known.
    const races = lost && !this.#isStarting ? (this.#races.get(key) ?? 0) + 1 : 0;
    if (races === 0) this.#races.delete(key);
    else this.#races.set(key, races);
    // A lost race is won the next time; one that never is has another cause.
    if (error === undefined || (lost && races !== RACES)) return;
    if (REPORTING.has(record.controller)) return;
    const message = messageOf(error);
    if (!lost && before !== undefined && messageOf(before) === message) return;
    this.#warn('Failed', record.key, `${record.controller}: ${message}`);
  }

  #warn(event: string, subject: string, message: string): void {
    const { session, log } = this.#options;
    log({ at: session.clock.now(), level: 'warn', event, subject, message });
  }

  /** Shows that the loop works. Detects that another process took the lock, so that two processes never work on one folder. */
  async #beat(signal: AbortSignal): Promise<void> {
    const { session, lock, onLost } = this.#options;
    while (!signal.aborted) {
      this.#heartbeat.beat();
      await sleep(session.clock, BEAT_INTERVAL_MS, signal);
      if (signal.aborted) return;
      try {
        if (lock?.isHeld() === false) onLost(`the lock ${session.folder.upLock} was lost`);
      } catch (error) {
        this.#warn('Error', session.folder.upLock, messageOf(error));
      }
    }
  }
}
