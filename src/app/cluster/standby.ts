import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import { aborted } from '../service/until-stopped.ts';
import { watchLedger } from './ledger-watch.ts';
import { objectWarnings } from './object-warnings.ts';
import { type ClusterSession, openClusterSession } from './open-cluster-session.ts';
import type { ReplicaOptions } from './replica-options.ts';
import { RepositoryFollower } from './repositories/repository-follower.ts';

export interface StandbyOptions
  extends Pick<ReplicaOptions, 'namespace' | 'cache' | 'signing' | 'network' | 'functions'> {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly warn: (subject: string, message: string) => void;
  /** Called when each registered repository was opened or has failed, or that has taken too long. */
  readonly onWarm: (progress: string) => void;
}

const RETRY_MS = 5000;
/** Milliseconds after which a Git host that is slow does not keep a replica from being ready any more. */
const MAX_WARM_UP_MS = 300_000;

/**
 * The work of a replica that does not lead: it mirrors and indexes the registered repositories, so that little is missing when it becomes
 * leader. It writes nothing, neither in the cluster nor in Git. The leader opens a session of its own on the mirrors and index caches: it
 * takes over no state in memory that was read without the Lease.
 */
export class Standby {
  readonly #options: StandbyOptions;
  readonly #stop = new AbortController();
  #work: Promise<void> | undefined;
  #cancelRetry: () => void = () => undefined;

  constructor(options: StandbyOptions) {
    this.#options = options;
  }

  /** Returns at once. A failure is reported, and retried. */
  start(): void {
    this.#work = this.#run().catch((error: unknown) => {
      if (this.#stop.signal.aborted) return;
      this.#options.warn('standby', `cannot follow the repositories: ${messageOf(error)}; retrying`);
      this.#cancelRetry = this.#options.clock.schedule(RETRY_MS, () => this.start());
    });
  }

  /** Resolves when mirrors and caches are closed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelRetry();
    await this.#work;
  }

  async #run(): Promise<void> {
    const { client, clock, namespace, cache, network, functions, signing, warn } = this.#options;
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const opened = await openClusterSession({
      ...{ client, clock, namespace, folder: cache, functions, signing, signal },
      network: { ...network, expectMayPush: refusePush },
      term: undefined,
      onEvent: () => undefined,
      onError: objectWarnings(clock, (message) => {
        if (!signal.aborted) warn('objects', message);
      }),
    });
    try {
      const requests = new SyncRequests(clock);
      const follower = new RepositoryFollower({ session: opened.session, requests, warn });
      const watch = followLedger({ client, clock, namespace, opened, requests, warn });
      follower.start();
      const warm = follower.opened(MAX_WARM_UP_MS).then(() => {
        if (!signal.aborted) this.#options.onWarm(follower.progress);
      });
      await aborted(signal);
      await Promise.all([follower.stop(), watch.stop(), warm]);
    } finally {
      await opened.session.close();
    }
  }
}

/** Requests a sync of each repository in which another process has written. */
export function followLedger({
  client,
  clock,
  namespace,
  opened: { session, ledger },
  requests,
  warn,
}: Pick<StandbyOptions, 'client' | 'clock' | 'namespace' | 'warn'> & {
  readonly opened: ClusterSession;
  readonly requests: SyncRequests;
}) {
  return watchLedger({
    ...{ client, clock, namespace, ledger, warn },
    onWritten: (ids) => {
      for (const { namespace: of, repository: name } of writtenIn(session.store, ids))
        requests.addOwn({ namespace: of, name }, 'everything');
    },
  });
}

function writtenIn(store: RevisionStore, ids: ReadonlySet<string> | undefined) {
  return store.repositories().filter(({ trust }) => ids === undefined || ids.has(trust.knownId));
}

function refusePush(): never {
  throw new SluiceError('Unavailable', 'nothing was pushed: this replica is a standby; the one that leads writes');
}
