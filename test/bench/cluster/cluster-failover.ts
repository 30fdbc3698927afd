import { setTimeout as sleep } from 'node:timers/promises';
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

export const FAILOVER_HEAD = ['how the leader ends', 'rounds', 'median', 'longest', 'writes refused', 'aim', 'met'];

interface Failover {
  /** Milliseconds of the longest time without an accepted write. */
  readonly outageMs: number;
  readonly refused: number;
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
  const outages = results.map(({ outageMs }) => outageMs);
  const longest = Math.max(...outages);
  const refused = results.map((result) => result.refused).join(', ');
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;
  const aim = `<= ${aimMs / 1000} s`;
  const met = longest <= aimMs ? 'yes' : 'no';
  return [signal, `${rounds}`, seconds(median(outages)), seconds(longest), refused, aim, met];
}

async function failover(place: ClusterPlace, signal: 'SIGKILL' | 'SIGTERM'): Promise<Failover> {
  const { route, targets } = place;
  const { leader } = route;
  let refused = 0;
  let after = 0;
  leader.kill(signal);
  const signalled = performance.now();
  const accepted = [signalled];
  while (after < ACCEPTED) {
    if (performance.now() - signalled > MAX_FAILOVER_MS) throw new Error('no replica took over');
    const hasSuccessor = route.leader !== leader;
    if (await writes(targets.aggregated)) {
      accepted.push(performance.now());
      if (hasSuccessor) after += 1;
    } else refused += 1;
    await sleep(BETWEEN_WRITES_MS);
  }
  await leader.ended;
  // Its cache is on the disk of the node, where the container starts again.
  await place.startStandby(leader);
  const gaps = accepted.slice(1).map((at, index) => at - (accepted[index] ?? at));
  return { outageMs: Math.max(...gaps), refused };
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
