import { EventRecorder } from '../../controller/event-recorder.ts';
import { LeaderElector } from '../../controller/leader-election/leader-elector.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import { HttpClient } from '../../kubernetes/http-client.ts';
import { HealthChecks } from '../../server/health/health-checks.ts';
import { ClusterFront } from './cluster-front.ts';
import { SIGNING_KEY_NAME } from './ensure-signing-key.ts';
import { leadTerm } from './leadership/lead-term.ts';
import { LeaderLabel } from './leadership/leader-label.ts';
import type { ReplicaOptions, Role } from './replica-options.ts';
import { runLeader } from './run-leader.ts';
import { Standby } from './standby.ts';

/** Milliseconds until a kube-apiserver begins a response; webhooks of others have ten seconds by default. */
const RESPONSE_TIMEOUT_MS = 20_000;

const LEASES: Readonly<Record<Role, string>> = {
  both: 'sluice',
  api: 'sluice-api',
  controllers: 'sluice-controllers',
};

/**
 * Runs one replica of an installation in a cluster: it stands by until it leads. Resolves with the exit code when the signal has aborted or
 * the work has failed, the work has ended and the Lease is released.
 */
export async function runReplica(options: ReplicaOptions): Promise<number> {
  const { access, role, namespace, identity, signal, log, exit } = options;
  const clock = systemClock;
  const warn = (subject: string, message: string) =>
    log({ at: clock.now(), level: 'warn', event: 'Problem', subject, message });
  const info = (event: string, subject: string, message: string) =>
    log({ at: clock.now(), level: 'info', event, subject, message });
  const limits = { headers: RESPONSE_TIMEOUT_MS };
  const connection = new Connection(access, { onWarning: (text) => warn('cluster', text), limits });
  const client = new HttpClient({ connection, face: 'controller' });
  const health = new HealthChecks(503);
  // Ready means that it could lead at once. The Service finds the leader by a label.
  let isWarm = false;
  let isEnding = false;
  const onWarm = () => {
    isWarm = true;
  };
  const onStandbyWarm = (progress: string) => {
    if (!isWarm) info('Warm', identity, `the standby is warm and could lead: ${progress}`);
    onWarm();
  };
  health.add('readyz', 'warm', () => {
    if (isEnding || signal.aborted) throw new Error('it stops');
    if (!isWarm) throw new Error('repositories are not opened yet');
    return elector.isLeader() ? 'leads' : `standby of ${elector.leaderIdentity ?? 'no leader'}`;
  });
  const label =
    options.pod === undefined || role === 'controllers'
      ? undefined
      : new LeaderLabel({ client, clock, pod: options.pod, isLeader: () => elector.isLeader(), warn });
  const address = options.listen;
  const front = await ClusterFront.open({
    ...{ client, clock, address, namespace, service: options.service, health, warn },
  }).catch((error: unknown) => {
    throw explainMissingNamespace(error, namespace);
  });
  info('Listening', front.url, `replica ${identity}, role ${role}`);
  const recorder = new EventRecorder({
    ...{ client, clock, component: 'sluice' },
    onError: (error) => warn('events', messageOf(error)),
  });
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = options;
  const signing =
    options.signing.file === undefined && options.signing.secret === undefined
      ? { secret: { namespace, name: SIGNING_KEY_NAME } }
      : options.signing;
  const network = { ...options.network, isRemoteOnly: true };
  const standby = new Standby({ ...options, network, signing, client, clock, warn, onWarm: onStandbyWarm });
  const lease = `${namespace}/${LEASES[role]}`;
  let electionError: { readonly error: unknown; readonly atMs: number } | undefined;
  const recentError = () =>
    electionError !== undefined && clock.monotonic() - electionError.atMs < leaseDurationMs
      ? electionError.error
      : undefined;
  let isReported = false;
  const elector: LeaderElector = new LeaderElector({
    ...{ client, clock, namespace, name: LEASES[role], identity, leaseDurationMs, renewDeadlineMs, retryPeriodMs },
    recorder,
    onStartedLeading: async (term) => {
      info('Leading', identity, `holds Lease ${lease}; it reads the repositories, then serves requests`);
      const work = () =>
        runLeader({
          ...{ ...options, client, clock, front, health, warn },
          network: { ...network, expectMayPush: () => expectLeader(elector) },
          signing,
          leadership: () => new Map([[LEASES[role], elector.isLeader()]]),
          signal: term,
          mirrorsClosed: standby.stop(),
          onReady: () => {
            onWarm();
            label?.lead();
          },
        });
      const onEnd = () => {
        isEnding = true;
      };
      const onFailed = () => {
        isReported = true;
      };
      const holder = () => elector.leaderIdentity;
      const calls = { work, holder, recentError, onEnd, onFailed, onLost: () => exit(1), warn };
      try {
        await leadTerm({ ...calls, lease, identity }, term, signal);
      } finally {
        // Before the Lease is released.
        await label?.stop();
      }
    },
    onNewLeader: (leader) => {
      if (leader !== undefined && leader !== identity) info('Standby', identity, `${leader} leads`);
    },
    onError: (error) => {
      electionError = { error, atMs: clock.monotonic() };
      warn('leader election', messageOf(error));
    },
  });
  health.add('livez', 'leader-election', () => elector.check());
  try {
    label?.start();
    standby.start();
    await elector.run(signal);
    return 0;
  } catch (error) {
    if (!isReported) throw error;
    return 1;
  } finally {
    await Promise.all([standby.stop(), label?.stop()]);
    await recorder.flush();
    await front.stop();
    await connection.close();
  }
}

/** The first request that needs the namespace is the one that creates the Secret with the certificates. */
export function explainMissingNamespace(error: unknown, namespace: string): unknown {
  if (!isSluiceError(error, 'NotFound') || !error.message.startsWith('namespaces "')) return error;
  return new SluiceError(
    'NotFound',
    `cannot start in the namespace ${namespace}: ${error.message}; install the manifests (docs/install.md), which create it, or name another one with --namespace`,
    { cause: error },
  );
}

/** The fence before each push: by the monotonic clock, so that a process that was suspended does not write with an expired Lease. */
function expectLeader(elector: LeaderElector): void {
  if (elector.isLeader()) return;
  throw new SluiceError(
    'Unavailable',
    'nothing was pushed: this replica does not hold the Lease any more, and another one may lead; try again',
  );
}
