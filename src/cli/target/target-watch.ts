import { untilStopped } from '../../app/service/until-stopped.ts';
import { Informer } from '../../controller/informer.ts';
import { deliveredCount } from '../../delivery/delivered/delivered-package.ts';
import { currentDeployment } from '../../delivery/status/target-deployment.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery-target.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import type { Access } from '../access/access.ts';
import { inAccess } from '../access/in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectTarget } from './target-get.ts';
import { targetRow } from './target-rows.ts';

export interface TargetWatchOptions extends PlaceOptions {
  readonly output: 'text' | 'json';
  readonly until?: 'synced' | 'healthy';
  readonly timeout?: string;
}

const NOT_REACHED = 1;

/** `sluice target watch` */
export function targetWatch(name: string, options: TargetWatchOptions, invocation: Invocation): Promise<CommandResult> {
  const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout);
  if (options.timeout !== undefined && timeoutMs === undefined)
    throw new SluiceError('InvalidInput', `--timeout ${options.timeout} is no duration; use one such as 90s or 10m`);
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const first = await expectTarget(access, name);
    const { until } = options;
    if (until !== undefined && first.spec.engine === undefined)
      throw new SluiceError('InvalidInput', `target ${name} has no spec.engine, so nothing is read back; set it first`);
    if (access.server === undefined && !isReached(first, until))
      terminal.note(`no server runs on ${printable(access.where)}, so nothing changes; start "sluice up"`);
    const stop = untilStopped(() => undefined);
    const cancel =
      timeoutMs === undefined ? () => undefined : access.clock.schedule(timeoutMs, () => stop.stop('timeout'));
    try {
      return await follow(access, name, options, invocation, stop.signal);
    } finally {
      cancel();
      stop.release();
    }
  });
}

/** Prints a line for each change, until the state is reached or the signal aborts. */
async function follow(
  { client, clock, namespace }: Access,
  name: string,
  { until, output, timeout }: TargetWatchOptions,
  { terminal }: Invocation,
  signal: AbortSignal,
): Promise<CommandResult> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let last = '';
  const print = (target: DeliveryTarget) => {
    const { status } = target;
    const shown = JSON.stringify([status?.lastCommit, status?.deployment, deliveredCount(status), status?.conditions]);
    if (shown === last) return;
    last = shown;
    if (output === 'json') terminal.line(JSON.stringify(target));
    else {
      const [, packages, delivered, synced, healthy, , message = ''] = targetRow(target, clock.now());
      const time = new Date(clock.now()).toISOString().slice(11, 19);
      const states = `${packages} packages, delivered ${delivered}, synced ${synced}, healthy ${healthy}`;
      terminal.line(printable(`${time}  ${states}${message === '' ? '' : `: ${message}`}`));
    }
  };
  const informer = new Informer({
    ...{ client, kind: deliveryTargetKind, clock },
    selection: { namespace, fieldSelector: `metadata.name=${name}` },
    onError: (error) => {
      if (!isSluiceError(error, 'Expired')) terminal.note(`warning: ${printable(messageOf(error))}`);
    },
  });
  informer.addHandler((event) => {
    if (event.type === 'delete') {
      reject(new SluiceError('NotFound', `target ${name} was deleted`));
      return;
    }
    print(event.object);
    if (isReached(event.object, until)) resolve(0);
  });
  const end = () => {
    if (signal.reason === 'timeout' && until !== undefined)
      terminal.note(
        `target ${name} is not ${until} within ${timeout}; "sluice target get ${name} --unhealthy" lists its packages`,
      );
    resolve(until === undefined ? 0 : NOT_REACHED);
  };
  signal.addEventListener('abort', end, { once: true });
  informer.start();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', end);
    await informer.stop();
  }
}

/** True if the last delivery is in the state; false without one to wait for. */
function isReached(target: DeliveryTarget, until: 'synced' | 'healthy' | undefined): boolean {
  const deployment = currentDeployment(target);
  if (until === undefined || deployment === undefined) return false;
  return deployment.synced.status === 'True' && (until === 'synced' || deployment.healthy.status === 'True');
}
