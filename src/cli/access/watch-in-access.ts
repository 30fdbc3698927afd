import { setTimeout as pause } from 'node:timers/promises';
import type { DataFolder } from '../../app/data/data-folder.ts';
import { runningUp } from '../../app/data/up-lock.ts';
import { untilStopped } from '../../app/service/until-stopped.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import type { Access } from './access.ts';
import { inPackages } from './in-packages.ts';
import { placeOf } from './place.ts';

interface WatchOptions extends PlaceOptions {
  /** A duration. Default: without limit. */
  readonly timeout?: string;
}

/** Milliseconds between two looks for a server. */
const LOOK_MS = 500;
const SERVED = 'served';

/**
 * Runs a command that watches objects, until `watch` returns, which it must do soon after its signal aborts: with the reason `timeout` if
 * --timeout has passed. A data folder reports no changes of other processes: once a server starts on it, what is watched is watched there.
 */
export async function watchInAccess(
  options: WatchOptions,
  invocation: Invocation,
  watch: (access: Access, signal: AbortSignal) => Promise<CommandResult>,
): Promise<CommandResult> {
  const { timeout } = options;
  const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout);
  if (timeout !== undefined && timeoutMs === undefined)
    throw new SluiceError('InvalidInput', `--timeout ${timeout} is no duration; use one such as 90s or 2h`);
  const place = placeOf(options, invocation.environment);
  const stop = untilStopped(() => undefined);
  let cancel: (() => void) | undefined;
  try {
    for (;;) {
      const result = await inPackages(options, invocation, async (access) => {
        if (timeoutMs !== undefined) cancel ??= access.clock.schedule(timeoutMs, () => stop.stop('timeout'));
        if (access.server !== undefined || place.kind === 'server') return watch(access, stop.signal);
        const served = new AbortController();
        const signal = AbortSignal.any([stop.signal, served.signal]);
        const looks = untilServed(place.folder, signal).then((isServed) => served.abort(isServed ? SERVED : undefined));
        const [ended] = await Promise.all([
          watch(access, signal).finally(() => served.abort()),
          looks.finally(() => served.abort()),
        ]);
        if (served.signal.reason !== SERVED) return ended;
        invocation.terminal.note(`a server has started on ${printable(access.where)}, and is watched from now on`);
        return SERVED;
      });
      if (result !== SERVED) return result;
    }
  } finally {
    cancel?.();
    stop.release();
  }
}

/** Resolves with true once a server works on the data folder, or with false after the signal has aborted. */
async function untilServed(folder: DataFolder, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if ((await runningUp(folder))?.serves === true) return true;
    await pause(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
  return false;
}
