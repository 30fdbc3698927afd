import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { ReplicaOptions, Role } from '../../app/cluster/replica-options.ts';
import { runReplica } from '../../app/cluster/run-replica.ts';
import { checkDisabled } from '../../app/controllers/controllers.ts';
import { dataFolder, takeCacheFolder } from '../../app/data/data-folder.ts';
import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import { loadResolvers } from '../../app/resolvers/load-resolvers.ts';
import { type ListenAddress, listenAddress, webhookAddress } from '../../app/service/listen-address.ts';
import type { LogSink } from '../../app/service/log/log-entry.ts';
import { untilStopped } from '../../app/service/until-stopped.ts';
import { withTracing } from '../../app/tracing/with-tracing.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import {
  checkElectionConfig,
  type ElectionConfig,
  type ElectionTimes,
} from '../../controller/leader-election/election-config.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { findClusterAccess } from '../../kubernetes/access/kubeconfig.ts';
import { DNS_LABEL, followsRule } from '../../resource/object/name-rules.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { exitCodeOf, isExpected } from '../output/report-error.ts';
import { jsonSink, textSink } from '../up/log-sinks.ts';
import { diskBudgetOf, functionsOf, type WorkOptions } from '../up/work-options.ts';

export interface ServeOptions extends WorkOptions {
  readonly role: Role;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly cacheDir: string;
  readonly listen: string;
  readonly webhookListen?: string;
  readonly service: string;
  readonly leaseDuration: string;
  readonly renewDeadline: string;
  readonly retryPeriod: string;
  readonly identity?: string;
  readonly log?: 'text' | 'json';
}

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
const DEFAULT_NAMESPACE = 'sluice-system';

/** `sluice serve` */
export async function serve(options: ServeOptions, { terminal, environment }: Invocation): Promise<CommandResult> {
  const form = options.log ?? (terminal.out.isTTY === true ? 'text' : 'json');
  const log = form === 'json' ? jsonSink(terminal) : textSink(terminal);
  try {
    const replica = await replicaOf(options, environment, log);
    const lock = await takeCacheFolder(replica.cache, systemClock);
    const stopping = 'stopping: running work is finished first';
    const stop = untilStopped(() => {
      if (form === 'text') terminal.note(stopping);
      else log({ at: Date.now(), level: 'info', event: 'Stopping', subject: 'sluice', message: stopping });
    });
    try {
      const { kubeconfig, context } = options;
      const access = await findClusterAccess({ kubeconfig, context, environment });
      return await withTracing(environment, log, () =>
        runReplica({ ...replica, access, signal: stop.signal, exit: (code) => process.exit(code) }),
      );
    } finally {
      stop.release();
      await lock.release();
    }
  } catch (error) {
    if (form === 'text' || !isExpected(error)) throw error;
    // Collectors of logs read one object a line.
    log({ at: Date.now(), level: 'warn', event: 'Failed', subject: 'sluice', message: messageOf(error) });
    return exitCodeOf(error);
  }
}

/** What the options and the environment say of a replica. Throws InvalidInput for what no replica can run with. */
async function replicaOf(
  options: ServeOptions,
  environment: NodeJS.ProcessEnv,
  log: LogSink,
): Promise<Omit<ReplicaOptions, 'access' | 'signal' | 'exit'>> {
  const { role, service } = options;
  const disabled = options.disable ?? [];
  checkDisabled(disabled, { housekeeping: false });
  const ofPod = environment.POD_NAMESPACE ?? (await namespaceOfPod());
  const namespace = options.namespace ?? ofPod ?? DEFAULT_NAMESPACE;
  if (!followsRule(namespace, DNS_LABEL))
    throw new SluiceError(
      'InvalidInput',
      `--namespace ${JSON.stringify(namespace)} is no name of a namespace: use lower-case letters, digits and hyphens, 63 at most`,
    );
  const { POD_NAME: podName } = environment;
  const replica = {
    ...{ role, service, disabled, log },
    resolvers: await loadResolvers(options.resolver ?? []),
    leaseDurationMs: durationMs('--lease-duration', options.leaseDuration),
    renewDeadlineMs: durationMs('--renew-deadline', options.renewDeadline),
    retryPeriodMs: durationMs('--retry-period', options.retryPeriod),
    listen: secureAddress(options.listen),
    webhooks: options.webhookListen === undefined ? undefined : webhookAddress(options.webhookListen),
    signing: signingChoice(environment),
    network: gitNetworkOf(options, environment),
    functions: functionsOf(options),
    diskBudget: diskBudgetOf(options),
    cache: dataFolder(options.cacheDir),
    namespace,
    ...(podName === undefined ? {} : { pod: { namespace: ofPod ?? namespace, name: podName } }),
    identity: options.identity ?? `${podName ?? hostname()}_${randomUUID()}`,
  };
  checkTimes(replica);
  return replica;
}

/** Before a port is opened: a process that cannot elect a leader must not look alive. */
function checkTimes({
  namespace,
  identity,
  ...times
}: ElectionTimes & Pick<ElectionConfig, 'namespace' | 'identity'>): void {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = times;
  try {
    checkElectionConfig({ namespace, identity, name: 'sluice', leaseDurationMs, renewDeadlineMs, retryPeriodMs });
  } catch (error) {
    const message = `${messageOf(error)}; change --lease-duration, --renew-deadline or --retry-period`;
    throw new SluiceError('InvalidInput', message, { cause: error });
  }
}

/** Users send their credentials here, also over loopback. */
function secureAddress(text: string): ListenAddress {
  const address = listenAddress(text);
  if (address.tls) return address;
  throw new SluiceError('InvalidInput', `--listen ${JSON.stringify(text)}: it is served with TLS; leave http:// out`);
}

/** Reads a duration of whole or fractional seconds or minutes, such as `15s`, as Kubernetes programs take it. */
function durationMs(option: string, text: string): number {
  const [, number, unit] = /^(\d{1,6}(?:\.\d{1,3})?)(ms|s|m)$/.exec(text) ?? [];
  if (number !== undefined) return Number(number) * (unit === 'ms' ? 1 : unit === 's' ? 1000 : 60_000);
  throw new SluiceError('InvalidInput', `${option} ${JSON.stringify(text)} must be a duration, such as 15s`);
}

async function namespaceOfPod(): Promise<string | undefined> {
  try {
    return (await readFile(NAMESPACE_FILE, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
