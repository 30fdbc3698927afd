import { createDataFolder, type DataFolder, exists } from '../../app/data/data-folder.ts';
import type { UpAbout } from '../../app/data/up-lock.ts';
import type { FunctionSettings } from '../../app/functions/function-settings.ts';
import { BUILT_IN_RESOLVERS } from '../../app/resolvers/built-in-resolvers.ts';
import type { ListenAddress } from '../../app/service/listen-address.ts';
import type { LogSink } from '../../app/service/log/log-entry.ts';
import { type ServiceOptions, SluiceService } from '../../app/service/service.ts';
import { type StopSignal, untilStopped } from '../../app/service/until-stopped.ts';
import { Session } from '../../app/session/session.ts';
import type { SigningChoice } from '../../app/trust/signing-choice.ts';
import { ProcessLock } from '../../foundation/files/process-lock.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock, timestamp } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import type { Resolver } from '../../package/plan/ports/resolver.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { QuotaLimits } from '../../resource/storage/memory/namespace-quota.ts';
import { requireFreePort } from '../../server/listener.ts';
import type { Terminal } from '../output/terminal.ts';

export interface RunOptions {
  readonly folder: DataFolder;
  readonly network: GitNetwork;
  readonly actor: Actor;
  readonly terminal: Terminal;
  readonly log: LogSink;
  readonly resolvers: readonly Resolver[];
  readonly disabled: readonly string[];
  /** Bytes; see the repository controller. */
  readonly diskBudget?: number | undefined;
  /** Quota of each namespace. */
  readonly quota?: Partial<QuotaLimits> | undefined;
  /** Permissions of functions outside of this process. */
  readonly functions?: FunctionSettings;
  /** The key that signs statements; default: that of the data folder. */
  readonly signing: SigningChoice;
  /** Also run the controllers that only a long-running server needs. */
  readonly housekeeping: boolean;
  /** Serve the Kubernetes API: at an address, or where it was last time. Undefined: do not. */
  readonly serve: ListenAddress | 'default' | undefined;
  /** Serve only webhooks at a second address. */
  readonly webhooks?: ListenAddress;
}

export interface Running {
  readonly session: Session;
  readonly service: SluiceService;
  readonly stop: StopSignal;
}

/**
 * Locks the data folder and runs the service around `run`; in any case it finishes work in progress, saves caches and releases
 * the lock. `prepare` runs before the controllers start.
 */
export async function runService<Result>(
  options: RunOptions,
  prepare: (session: Session) => Promise<void>,
  run: (running: Running) => Promise<Result>,
): Promise<Result> {
  const {
    folder,
    actor,
    terminal,
    log,
    resolvers,
    disabled,
    housekeeping,
    serve,
    webhooks,
    functions,
    signing,
    network,
  } = options;
  const checkPorts = async () => {
    for (const address of [serve, webhooks])
      if (typeof address === 'object') await requireFreePort(address.host, address.port);
  };
  // A refusal leaves no new folder behind.
  if (!(await exists(folder.path))) await checkPorts();
  await createDataFolder(folder);
  const about: UpAbout = {
    resolvers: [...BUILT_IN_RESOLVERS, ...resolvers].map(({ name, claims, waitsFor }) => ({
      ...{ name, claims: [...claims] },
      ...(waitsFor === undefined ? {} : { waitsFor: [...waitsFor] }),
    })),
    disabled: [...disabled],
    serves: serve !== undefined,
  };
  const lock = await takeLock(folder, about);
  const stop = untilStopped(() =>
    terminal.note('stopping: running work is finished first; a second Ctrl-C ends at once'),
  );
  try {
    await checkPorts();
    const onNote = (message: string) =>
      log({ at: systemClock.now(), level: 'warn', event: 'GitEngine', subject: 'git', message });
    const onError = (error: unknown) =>
      log({ at: systemClock.now(), level: 'warn', event: 'Error', subject: 'objects', message: messageOf(error) });
    const session = await Session.open({
      ...{ folder, actor, network, write: true, opens: true, about, signing, onNote, onError, quota: options.quota },
      ...(functions === undefined ? {} : { functions }),
    });
    try {
      await prepare(session);
      const onLost = (message: string) => stop.stop(message);
      const { signal } = stop;
      const service = new SluiceService({
        ...{ session, lock, log, resolvers, disabled, housekeeping, signal, onLost },
        ...(serve === undefined ? {} : { serve: serveAt(session, serve) }),
        ...(webhooks === undefined ? {} : { webhooks }),
        diskBudget: options.diskBudget,
      });
      try {
        await service.start();
        const result = await run({ session, service, stop });
        if (stop.signal.aborted && stop.signal.reason !== 'stopped') {
          throw new SluiceError('Unavailable', `${stop.signal.reason}; another process may work on ${folder.path} now`);
        }
        return result;
      } finally {
        await service.stop();
      }
    } finally {
      await session.close();
    }
  } finally {
    stop.release();
    await lock.release();
  }
}

/** The modules for serving are loaded only if they are needed: `--until-idle` does not serve. */
function serveAt(session: Session, serve: ListenAddress | 'default'): ServiceOptions['serve'] {
  const address = serve === 'default' ? undefined : serve;
  return async (parts) => (await import('../../app/service/serve-api.ts')).serveApi({ session, address, ...parts });
}

async function takeLock(folder: DataFolder, about: UpAbout): Promise<ProcessLock> {
  try {
    return await ProcessLock.acquire(folder.upLock, { holder: { since: timestamp(systemClock.now()), about } });
  } catch (error) {
    if (!isSluiceError(error, 'Busy')) throw error;
    throw new SluiceError('Busy', `another "sluice up" works on ${folder.path}: ${error.message}`, { cause: error });
  }
}
