import { Informer } from '../../controller/informer.ts';
import { deliveredCount, isAbout } from '../../delivery/delivered/delivered-package.ts';
import { deliveredOf } from '../../delivery/delivered/list-delivered.ts';
import { packageKey } from '../../delivery/selection/select-revisions.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { watchInAccess } from '../access/watch-in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectTarget } from './target-get.ts';
import { isReached, obstacleOf, type TargetGoal, type WantedRevision } from './target-goal.ts';
import { targetRow } from './target-rows.ts';

export interface TargetWatchOptions extends PlaceOptions {
  readonly output: 'text' | 'json';
  readonly until?: 'synced' | 'healthy';
  readonly timeout?: string;
  /** Name of a package revision. */
  readonly revision?: string;
}

const NOT_REACHED = 1;
/** Milliseconds for which an obstacle has to last: the status can be about the revision before. */
const OBSTACLE_LASTS_MS = 5_000;

/** `sluice target watch` */
export function targetWatch(name: string, options: TargetWatchOptions, invocation: Invocation): Promise<CommandResult> {
  return watchInAccess(options, invocation, async (access, signal) => {
    const { terminal } = invocation;
    const first = await expectTarget(access, name);
    const { until } = options;
    if (until !== undefined && first.spec.engine === undefined)
      throw new SluiceError('InvalidInput', `target ${name} has no spec.engine, so nothing is read back; set it first`);
    const wanted = options.revision === undefined ? undefined : await wantedRevision(access, options.revision);
    const goal = { until, wanted };
    if (access.server === undefined && (wanted !== undefined || !isReached(first, goal, undefined)))
      terminal.note(
        `no server runs on ${printable(access.where)}, so nothing changes; start "${commandFor(options, invocation)('up')}"`,
      );
    return follow(access, name, options, goal, invocation, signal);
  });
}

async function wantedRevision(access: Access, name: string): Promise<WantedRevision> {
  const { spec } = await findRevision(access, name);
  const { repository, packageName, lifecycle, revision = 0 } = spec;
  if (revision < 1)
    throw new SluiceError(
      'Refused',
      `cannot wait for ${name}: it is ${revision === -1 ? 'the main branch' : `a ${lifecycle}`}, and targets deliver published revisions; approve it first`,
    );
  return { name, repository, package: packageName, revision };
}

/** Prints a line for each change, until the state is reached or the signal aborts. */
async function follow(
  { client, clock, namespace }: Access,
  name: string,
  { output, timeout }: TargetWatchOptions,
  goal: TargetGoal,
  { terminal }: Invocation,
  signal: AbortSignal,
): Promise<CommandResult> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const { until, wanted } = goal;
  const what = wanted === undefined ? `target ${name} is not` : `${printable(wanted.name)} on target ${name} is not`;
  let last = '';
  let checked: Promise<void> = Promise.resolve();
  let obstacle: string | undefined;
  let cancelCheck: (() => void) | undefined;
  const print = (target: DeliveryTarget) => {
    const { status } = target;
    const shown = JSON.stringify([status?.lastCommit, status?.deployment, deliveredCount(status), status?.conditions]);
    if (shown === last) return;
    last = shown;
    if (output === 'json') terminal.out.write(`${JSON.stringify(target)}\n`);
    else {
      const [, packages, delivered, synced, healthy, , message = ''] = targetRow(target, clock.now());
      const time = new Date(clock.now()).toISOString().slice(11, 19);
      const states = `${packages} ${packages === '1' ? 'package' : 'packages'}, delivered ${delivered}, synced ${synced}, healthy ${healthy}`;
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
    const target = event.object;
    print(target);
    if (wanted === undefined) {
      if (isReached(target, goal, undefined)) resolve(0);
      return;
    }
    checked = checked
      .then(() => deliveredRevision(client, target, wanted))
      .then((delivered) => check(target, wanted, delivered))
      .catch(reject);
  });
  const check = (target: DeliveryTarget, revision: WantedRevision, delivered: number | undefined) => {
    if (isReached(target, goal, delivered)) resolve(0);
    obstacle = obstacleOf(target, revision, delivered);
    if (obstacle === undefined) return;
    cancelCheck ??= clock.schedule(OBSTACLE_LASTS_MS, () => {
      cancelCheck = undefined;
      if (obstacle === undefined) return;
      const why = `target ${name} does not deliver ${revision.name}: ${obstacle}`;
      terminal.note(printable(`${why}; "sluice why ${revision.name}" shows the next step`));
      resolve(NOT_REACHED);
    });
  };
  const end = () => {
    const isWaiting = until !== undefined || wanted !== undefined;
    if (signal.reason === 'timeout' && isWaiting) {
      const next =
        wanted === undefined
          ? `"sluice target get ${name} --unhealthy" lists its packages`
          : `"sluice why ${printable(wanted.name)}" shows the cause`;
      terminal.note(`${what} ${until ?? 'delivered'} within ${timeout}; ${next}`);
    }
    resolve(isWaiting ? NOT_REACHED : 0);
  };
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  informer.start();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', end);
    cancelCheck?.();
    await informer.stop();
  }
}

/** The revision of the package in the delivery that the status is about; undefined if there is none, or the objects are ahead of the status. */
async function deliveredRevision(
  client: Access['client'],
  target: DeliveryTarget,
  wanted: WantedRevision,
): Promise<number | undefined> {
  const packages = await deliveredOf(client, undefined, target);
  if (!isAbout(target.status, packages)) return undefined;
  return packages.find((one) => packageKey(one) === packageKey(wanted))?.revision;
}
