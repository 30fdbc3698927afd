import { Informer } from '../../controller/informer.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { Access } from '../access/access.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { watchInAccess } from '../access/watch-in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectPlan } from './wave-get.ts';
import { freezesText, waveRows } from './wave-rows.ts';

export interface WaveWatchOptions extends PlaceOptions {
  readonly output: 'text' | 'json';
  readonly timeout?: string;
}

const NOT_COMPLETED = 1;

/** `sluice wave watch` */
export function waveWatch(name: string, options: WaveWatchOptions, invocation: Invocation): Promise<CommandResult> {
  return watchInAccess(options, invocation, async (access, signal) => {
    const first = await expectPlan(access, name);
    if (access.server === undefined && endOf(first) === undefined)
      invocation.terminal.note(
        `no server runs on ${printable(access.where)}, so nothing changes; start "${commandFor(options, invocation)('up')}"`,
      );
    return follow(access, name, options, invocation, signal);
  });
}

/** The exit code for a plan that has ended or is stopped; undefined for one in progress. */
function endOf({ status }: WavePlan): number | undefined {
  const { phase, pause } = status ?? {};
  if (phase === 'Completed') return 0;
  const isStopped = phase === 'Paused' && pause?.cause !== 'Requested';
  return isStopped || phase === 'Aborted' || phase === 'RolledBack' ? NOT_COMPLETED : undefined;
}

/** Prints the lines of the waves that have changed. */
async function follow(
  { client, clock, namespace }: Access,
  name: string,
  { output, timeout }: WaveWatchOptions,
  { terminal }: Invocation,
  signal: AbortSignal,
): Promise<CommandResult> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const shown = new Map<string, string>();
  const print = (key: string, text: string) => {
    if (shown.get(key) === text) return;
    shown.set(key, text);
    const time = new Date(clock.now()).toISOString().slice(11, 19);
    terminal.line(printable(`${time}  ${text}`));
  };
  let last = '';
  const show = (plan: WavePlan) => {
    if (output === 'json') {
      const text = JSON.stringify({ ...plan.status, elapsedMs: 0 });
      if (text !== last) terminal.out.write(`${JSON.stringify(plan)}\n`);
      last = text;
      return;
    }
    for (const [wave = '', size, state, targets, verified, failed, message] of waveRows(plan)) {
      const counts = targets === '' ? '' : `, ${verified} of ${targets} verified, ${failed} failed`;
      print(`wave ${wave}`, `${wave} (${size}): ${state}${counts}${message === '' ? '' : `: ${message}`}`);
    }
    const freezes = freezesText(plan);
    if (freezes !== undefined) print('freeze', `Frozen: ${freezes}`);
    else if (shown.has('freeze')) print('freeze', 'The freeze has ended');
    const { phase = 'Pending', message } = plan.status ?? {};
    const isNews = phase !== 'Running' || currentOf(plan) === undefined;
    if (isNews) print('plan', `${phase}${message === undefined ? '' : `: ${message}`}`);
  };
  const informer = new Informer({
    ...{ client, kind: wavePlanKind, clock },
    selection: { namespace, fieldSelector: `metadata.name=${name}` },
    onError: (error) => {
      if (!isSluiceError(error, 'Expired')) terminal.note(`warning: ${printable(messageOf(error))}`);
    },
  });
  informer.addHandler((event) => {
    if (event.type === 'delete') {
      reject(new SluiceError('NotFound', `wave plan ${name} was deleted`));
      return;
    }
    show(event.object);
    const end = endOf(event.object);
    if (end !== undefined) resolve(end);
  });
  const onAbort = () => {
    if (signal.reason === 'timeout')
      terminal.note(
        `${printable(name)} has not ended within ${timeout}; "sluice wave get ${printable(name)}" shows what it waits for`,
      );
    resolve(NOT_COMPLETED);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  informer.start();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await informer.stop();
  }
}

function currentOf({ status }: WavePlan) {
  return status?.waves.find(({ completedMs }) => completedMs === undefined);
}
