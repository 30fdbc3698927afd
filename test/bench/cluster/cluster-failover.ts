import { setTimeout as sleep } from 'node:timers/promises';
import type { Replica } from '../../cluster/support/sluice-serve.ts';
import { median } from '../table.ts';
import type { ClusterPlace } from './cluster-place.ts';
import { label } from './cluster-reads.ts';
import type { Target } from './cluster-rows.ts';

/** Milliseconds for one write. */
const MAX_WRITE_MS = 2000;
const BETWEEN_WRITES_MS = 20;
const MAX_FAILOVER_MS = 60_000;
/** Writes that the successor must accept before a round ends. */
const ACCEPTED = 3;

export const FAILOVER_HEAD = [
  'how the leader ends',
  'another leads',
  'it is ready',
  'no accepted write for',
  'longest',
  'rounds',
  'aim',
  'met',
];

interface Failover {
  /** Milliseconds until another replica held the Lease, and until it was ready. */
  readonly leadsMs: number;
  readonly readyMs: number;
  /** Milliseconds of the longest time without an accepted write. */
  readonly outageMs: number;
}

/** Ends the leader again and again, while a client changes one label after the other through the aggregator. */
export async function failoverRow(
  place: ClusterPlace,
  {
    signal,
    rounds,
    aimMs,
  }: { readonly signal: 'SIGKILL' | 'SIGTERM'; readonly rounds: number; readonly aimMs: number },
): Promise<string[]> {
  const results: Failover[] = [];
  for (let round = 0; round < rounds; round += 1) results.push(await failover(place, signal));
  const of = (figure: keyof Failover) => results.map((result) => result[figure]);
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;
  const medians = (['leadsMs', 'readyMs', 'outageMs'] as const).map((figure) => seconds(median(of(figure))));
  const longest = Math.max(...of('outageMs'));
  const aim = `<= ${aimMs / 1000} s`;
  return [signal, ...medians, seconds(longest), `${rounds}`, aim, longest <= aimMs ? 'yes' : 'no'];
}

async function failover(place: ClusterPlace, signal: 'SIGKILL' | 'SIGTERM'): Promise<Failover> {
  const { route, targets } = place;
  const { leader } = route;
  let after = 0;
  const signalledAt = Date.now();
  const signalled = performance.now();
  leader.kill(signal);
  const accepted = [signalled];
  while (after < ACCEPTED) {
    if (performance.now() - signalled > MAX_FAILOVER_MS) throw new Error('no replica took over');
    const hasSuccessor = route.leader !== leader;
    if (await writes(targets.aggregated)) {
      accepted.push(performance.now());
      if (hasSuccessor) after += 1;
    }
    await sleep(BETWEEN_WRITES_MS);
  }
  const { leader: successor, leaderSince: readyAt } = route;
  await leader.ended;
  // Its cache is on the disk of the node, where the container starts again.
  await place.startStandby(leader);
  const gaps = accepted.slice(1).map((at, index) => at - (accepted[index] ?? at));
  return { leadsMs: ledSince(successor) - signalledAt, readyMs: readyAt - signalled, outageMs: Math.max(...gaps) };
}

/** The time at which a replica became leader for the last time, by its log. */
function ledSince(replica: Replica): number {
  const line = replica.lines.findLast((text) => text.includes('"event":"Leading"'));
  if (line === undefined) throw new Error(`the log does not say when it began to lead:\n${replica.lines.join('\n')}`);
  return Date.parse((JSON.parse(line) as { readonly time: string }).time);
}

/** True if the change was accepted in time. */
async function writes(target: Target): Promise<boolean> {
  const late = sleep(MAX_WRITE_MS).then(() => false);
  const write = label(target).then(
    () => true,
    () => false,
  );
  return Promise.race([write, late]);
}
