import { deliveryTargetKind } from '../../resource/kinds/delivery-target.ts';
import { applyConfig, readConfig } from '../assembly/apply-config.ts';
import { CONTROLLERS, checkDisabled } from '../assembly/controllers.ts';
import { loadResolvers } from '../assembly/load-resolvers.ts';
import type { Session } from '../assembly/session.ts';
import { actorOf } from '../program/actor.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import type { LogSink } from '../up/log-entry.ts';
import { jsonSink, textSink } from '../up/log-sinks.ts';
import { type Running, runService } from '../up/run-service.ts';
import { aborted } from '../up/until-stopped.ts';
import { printWaitReport, waitReport } from '../up/wait-report.ts';
import { commandFor, folderOf } from './in-session.ts';

export interface UpOptions extends DataOptions, ActorOptions {
  readonly config?: readonly string[];
  readonly untilIdle?: boolean;
  readonly log: 'text' | 'json';
  readonly resolver?: readonly string[];
  readonly disable?: readonly string[];
}

/** `sluice up` */
export async function up(options: UpOptions, invocation: Invocation): Promise<Outcome> {
  const { terminal, environment } = invocation;
  const disabled = options.disable ?? [];
  checkDisabled(disabled);
  // All input is judged before anything is written.
  const manifests = await readConfig(options.config ?? []);
  const resolvers = await loadResolvers(options.resolver ?? []);
  const log = options.log === 'json' ? jsonSink(terminal) : textSink(terminal);
  const folder = folderOf(options, invocation);
  const actor = actorOf(options, environment);
  return runService(
    { folder, actor, terminal, log, resolvers, disabled },
    async (session) => {
      for (const { what, outcome } of await applyConfig(session, manifests)) {
        log({ at: session.clock.now(), level: 'info', event: 'Config', subject: what, message: outcome });
      }
      tellStart(session, log, disabled);
    },
    async (running) => {
      if (options.untilIdle !== true) {
        await aborted(running.stop.signal);
        return 0;
      }
      return untilIdle(running, options, invocation, log);
    },
  );
}

function tellStart(session: Session, log: LogSink, disabled: readonly string[]): void {
  const repositories = session.repositories().length;
  const targets = session.objects.objects(deliveryTargetKind).length;
  const names = CONTROLLERS.filter((name) => !disabled.includes(name)).join(', ');
  const message =
    repositories === 0
      ? 'no repository is registered yet; in another terminal: sluice repo reg <address>, or start with --config'
      : `${repositories} repositories, ${targets} delivery targets; controllers ${names}`;
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
  { session, service, stop, about }: Running,
  options: UpOptions,
  invocation: Invocation,
  log: LogSink,
): Promise<Outcome> {
  const { terminal } = invocation;
  try {
    await service.idle(stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return 1;
    throw error;
  }
  // The controllers have done what they can; what is left waits for others.
  const report = await waitReport(session, service, {
    resolvers: about.resolvers,
    disabled: about.disabled,
    running: true,
    now: session.clock.now(),
    actor: session.actor.name,
    command: commandFor(options, invocation),
  });
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
