import { CANNOT_SIGN } from '../../../controllers/repository/repository-status.ts';
import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { canonicalAddressNow } from '../../git/open/repository-address.ts';
import type { HttpClient } from '../../kubernetes/http-client.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { AdmissionWebhook } from '../../server/admission/admission-webhook.ts';
import type { HealthChecks } from '../../server/health/health-checks.ts';
import { MOVERS } from '../controllers/controllers.ts';
import { policyGatesOf, policyIssuersOf } from '../policies/policy-gates.ts';
import { InitialOpenings } from '../service/initial-openings.ts';
import { narrateEvent, repeatedWarnings } from '../service/log/narrate-event.ts';
import { SluiceService } from '../service/service.ts';
import { aborted } from '../service/until-stopped.ts';
import { serveClusterApi } from './cluster-api.ts';
import type { ClusterFront } from './cluster-front.ts';
import { ClusterKinds } from './cluster-kinds.ts';
import { ensureSigningKey, SIGNING_KEY_NAME } from './ensure-signing-key.ts';
import { keepPackagesOfEndingNamespace } from './keep-packages-of-ending-namespace.ts';
import { keepServerTrusted } from './keep-server-trusted.ts';
import { objectWarnings } from './object-warnings.ts';
import { aboutCluster, openClusterSession } from './open-cluster-session.ts';
import type { ReplicaOptions } from './replica-options.ts';
import { RepositoryFollower } from './repositories/repository-follower.ts';
import { UnreadRepositories, wasRead } from './repositories/unread-repositories.ts';
import { followLedger } from './standby.ts';
import { renewVersions, reserveVersions } from './version-blocks.ts';
import { type SigningKeyWatch, watchSigningKey } from './watch-signing-key.ts';

export interface LeaderOptions
  extends Pick<
    ReplicaOptions,
    | 'role'
    | 'namespace'
    | 'service'
    | 'cache'
    | 'webhooks'
    | 'signing'
    | 'network'
    | 'functions'
    | 'resolvers'
    | 'disabled'
    | 'diskBudget'
    | 'log'
  > {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly front: ClusterFront;
  readonly health: HealthChecks;
  readonly warn: (subject: string, message: string) => void;
  /** For the metrics. */
  readonly leadership: () => ReadonlyMap<string, boolean>;
  /** Aborts when the term ends. */
  readonly signal: AbortSignal;
  /** Resolves when the standby of this process has closed the mirrors and caches. */
  readonly mirrorsClosed: Promise<void>;
  /** Called once it serves. */
  readonly onReady: () => void;
}

/** The work of the replica that leads: resolves when the signal has aborted and what was running has ended. */
export async function runLeader(options: LeaderOptions): Promise<void> {
  const { client, clock, namespace, signing, network, functions, resolvers, log, warn, signal } = options;
  const { front, health, role, diskBudget, webhooks } = options;
  // Syncs and serves: the process of the controllers does all other work.
  const disabled = role === 'api' ? MOVERS : options.disabled;
  const ofServer = { namespace, name: options.service };
  // Only a Secret that Sluice chose is created by it.
  const { secret } = signing;
  if (secret?.namespace === namespace && secret.name === SIGNING_KEY_NAME) await ensureSigningKey(client, namespace);
  const isRepeated = repeatedWarnings(clock.now());
  const onObjectError = objectWarnings(clock, (message) => warn('objects', message));
  const opened = await openClusterSession({
    ...{ client, clock, namespace, folder: options.cache, network, functions, signing },
    signal,
    about: aboutCluster(resolvers, options.disabled),
    term: { reserveVersions: (lowest) => reserveVersions(client, namespace, clock.now(), lowest) },
    onNote: (message) => log({ at: clock.now(), level: 'warn', event: 'GitEngine', subject: 'git', message }),
    onError: onObjectError,
    onEvent: (event) => {
      // `watchSigningKey` reports it once, not for each Repository.
      if (event.reason === CANNOT_SIGN || isRepeated(event)) return;
      const entry = narrateEvent(event, clock.now(), true);
      if (entry !== undefined) log(entry);
    },
  });
  await options.mirrorsClosed;
  const { session, ledger } = opened;
  void renewVersions({ client, clock, namespace, log: session.log, signal, warn });
  const requests = new SyncRequests(clock);
  // Where each role has a process of its own, the other one writes too. Each leader writes objects again that are deleted by hand.
  const watch = followLedger({ client, clock, namespace, opened, requests, warn });
  const { readers, remoteTimeoutMs } = session;
  const { repositories } = readers;
  const wasShownAt = (address: string) => ledger.wasShownAt(canonicalAddressNow(address));
  // No client can know packages of a repository that was never read.
  const isExpected = (object: Stored<Repository>) => wasRead(object, () => repositories.list(), wasShownAt);
  const openings = new InitialOpenings({ clock, repositories, timeoutMs: remoteTimeoutMs, isExpected });
  const unread = new UnreadRepositories({
    ...{ repositories: repositories.informer, store: session.store, wasShownAt },
    wasRead: isExpected,
  });
  const onRead = (id: string) => openings.note(id);
  session.store.onArrival(onRead);
  const follower = role === 'api' ? new RepositoryFollower({ session, requests, warn, onRead }) : undefined;
  let key: SigningKeyWatch | undefined;
  try {
    await untilEnded(signal, () => front.access.whenSynced());
    // The key is in the ledger before anything is signed with it.
    session.trust.signer();
    await ledger.flushed();
    const { signingSecret } = session.readers;
    if (signingSecret !== undefined)
      key = watchSigningKey({
        informer: signingSecret.informer,
        signer: () => session.trust.signer(),
        openRepositories: () =>
          session.store.repositories().map((one) => ({ namespace: one.namespace, name: one.repository })),
        wake: (repository) => requests.wake(repository),
        log: (level, message) => log({ at: clock.now(), level, event: 'SigningKey', subject: 'signing key', message }),
      });
    follower?.start();
    const kinds = new ClusterKinds({
      ...{ registry: session.registry, client, clock, signal, onError: onObjectError },
      release: (kind) => service.manager.release(kind),
    });
    const service: SluiceService = new SluiceService({
      ...{ session, log, health, requests, resolvers, disabled, housekeeping: false, diskBudget, signal },
      // Requests wait for the repositories that they are about.
      ...(role === 'controllers' ? {} : { openings }),
      // A warm standby that becomes leader stays ready.
      reportsReady: false,
      reportedSteps: role === 'both' ? 'all' : role === 'api' ? 'own' : 'own-and-foreign',
      ...(webhooks === undefined ? {} : { webhooks }),
      leadership: options.leadership,
      ...{ cluster: client, kinds },
      ...(key === undefined ? {} : { canSign: key.isUsable }),
      unread: () => unread.ids(),
      serve: async (parts) => {
        const { handle } = new AdmissionWebhook({
          ...{ clock, hosts: session.network.hosts },
          authenticator: front.access.authenticator,
          authorizer: front.access.admissionAuthorizer,
          policyGates: () => policyGatesOf(client),
          policyIssuers: (namespace) => policyIssuersOf(client, namespace),
          onError: (error, where) => warn(where, messageOf(error)),
        });
        const servesPackages = role !== 'controllers';
        const publicPaths = servesPackages ? [handle] : [];
        const admit = keepPackagesOfEndingNamespace(client);
        return serveClusterApi({ session, openings, unread, front, admit, servesPackages, publicPaths }, parts);
      },
      onLost: (message) => warn('service', message),
    });
    try {
      await service.start();
      if (role !== 'controllers') keepServerTrusted({ client, clock, front, service: ofServer, signal, warn });
      if (!signal.aborted) options.onReady();
      await aborted(signal);
    } finally {
      await service.stop();
    }
  } finally {
    key?.stop();
    await Promise.all([follower?.stop(), watch.stop()]);
    unread.close();
    await session.close();
  }
}
