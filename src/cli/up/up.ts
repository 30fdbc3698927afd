import { checkDisabled, chosenControllers } from '../../app/controllers/controllers.ts';
import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import { loadResolvers } from '../../app/resolvers/load-resolvers.ts';
import { type ListenAddress, listenAddress, webhookAddress } from '../../app/service/listen-address.ts';
import type { LogSink } from '../../app/service/log/log-entry.ts';
import { aborted } from '../../app/service/until-stopped.ts';
import { applyConfig, readConfig } from '../../app/session/apply-config.ts';
import type { Session } from '../../app/session/session.ts';
import { withTracing } from '../../app/tracing/with-tracing.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { counted } from '../../foundation/text/counted.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { QuotaLimits } from '../../resource/storage/memory/namespace-quota.ts';
import { actorOf } from '../access/actor.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { folderOf } from '../access/place.ts';
import { placedExplanation } from '../access/placed-explanation.ts';
import type { ActorOptions, CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { jsonSink, textSink } from './log-sinks.ts';
import { type Running, runService } from './run-service.ts';
import { printWaitReport } from './wait-report.ts';
import { waitUntilIdle } from './wait-until-idle.ts';
import { diskBudgetOf, functionsOf, type WorkOptions } from './work-options.ts';

export interface UpOptions extends DataOptions, ActorOptions, WorkOptions {
  readonly config?: readonly string[];
  readonly untilIdle?: boolean;
  readonly log: 'text' | 'json';
  readonly namespaceObjects?: string;
  readonly namespaceSize?: string;
  /** False by `--no-listen`. */
  readonly listen?: string | boolean;
  readonly webhookListen?: string;
}

/** `sluice up` */
export async function up(options: UpOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal, environment } = invocation;
  const disabled = options.disable ?? [];
  checkDisabled(disabled, { housekeeping: true });
  const diskBudget = diskBudgetOf(options);
  const network = gitNetworkOf(options, environment);
  const quota = quotaOf(options);
  // All input is validated before anything is written.
  const manifests = await readConfig(options.config ?? []);
  const resolvers = await loadResolvers(options.resolver ?? []);
  const log = options.log === 'json' ? jsonSink(terminal) : textSink(terminal);
  const folder = folderOf(options, environment);
  const actor = actorOf(options, environment);
  const signing = signingChoice(environment);
  const housekeeping = options.untilIdle !== true;
  const serve = () =>
    runService(
      {
        ...{ folder, actor, terminal, log, resolvers, disabled, housekeeping, signing, network },
        serve: serveOf(options),
        diskBudget,
        quota,
        ...(options.webhookListen === undefined ? {} : { webhooks: webhookAddress(options.webhookListen) }),
        functions: functionsOf(options),
      },
      async (session) => {
        for (const { what, outcome } of await applyConfig(session, manifests)) {
          log({ at: session.clock.now(), level: 'info', event: 'Config', subject: what, message: outcome });
        }
        await logStart(session, log, chosenControllers({ disabled, housekeeping }), commandFor(options, invocation));
      },
      async (running) => {
        if (options.untilIdle !== true) {
          await aborted(running.stop.signal);
          return 0;
        }
        return untilIdle(running, options, invocation, log);
      },
    );
  return withTracing(environment, log, serve);
}

/** In bytes. */
function quotaOf({ namespaceObjects, namespaceSize }: UpOptions): Partial<QuotaLimits> {
  const number = (option: string, text: string) => {
    if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
    throw new SluiceError('InvalidInput', `${option} ${JSON.stringify(text)} must be a whole number above 0`);
  };
  return {
    ...(namespaceObjects === undefined ? {} : { objects: number('--namespace-objects', namespaceObjects) }),
    ...(namespaceSize === undefined ? {} : { bytes: number('--namespace-size', namespaceSize) * 1024 * 1024 }),
  };
}

/** Returns the address of the API. A run with --until-idle serves only if the user gives an address. */
function serveOf({ listen, untilIdle }: UpOptions): ListenAddress | 'default' | undefined {
  if (typeof listen === 'string') return listenAddress(listen);
  return listen === false || untilIdle === true ? undefined : 'default';
}

async function logStart(
  session: Session,
  log: LogSink,
  controllers: readonly string[],
  command: (...words: string[]) => string,
): Promise<void> {
  const repositories = (await session.repositories.list()).length;
  const targets = (await session.client.list(deliveryTargetKind)).items.length;
  const message =
    repositories === 0
      ? `no repository is registered yet; in another terminal: ${command('repo', 'reg')} <address>, or start with --config`
      : `${counted(repositories, 'repository', 'repositories')}, ${counted(targets, 'delivery target')}; controllers ${controllers.join(', ')}`;
  const subject = session.folder.shown;
  log({
    at: session.clock.now(),
    level: 'info',
    event: 'Started',
    subject,
    message,
    fields: { repositories, targets },
  });
}

async function untilIdle(
  running: Running,
  options: UpOptions,
  invocation: Invocation,
  log: LogSink,
): Promise<CommandResult> {
  const { terminal } = invocation;
  const { session } = running;
  const report = await waitUntilIdle(
    running,
    placedExplanation(options, invocation, { isDocument: options.log === 'json' }),
  );
  if (report === undefined) return 1;
  if (options.log === 'json') {
    const at = session.clock.now();
    log({
      at,
      level: 'info',
      event: 'Idle',
      subject: session.folder.shown,
      message: 'nothing moves',
      fields: { report },
    });
  } else {
    terminal.line();
    printWaitReport(terminal, report);
  }
  return report.repositories.length === 0 && report.failing.length === 0 ? 0 : 1;
}
