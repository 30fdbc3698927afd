import { setTimeout as sleep } from 'node:timers/promises';
import { clusterPrograms } from '../../cluster/support/programs.ts';
import { processLoad } from '../process-load.ts';
import { milliseconds, printTable } from '../table.ts';
import { FAILOVER_HEAD, failoverRow } from './cluster-failover.ts';
import { type ClusterPlace, openClusterPlace } from './cluster-place.ts';
import { readRows, watchRow } from './cluster-reads.ts';
import { HEAD } from './cluster-rows.ts';
import { lifecycleRows, RATE_HEAD, rateRows } from './cluster-writes.ts';

/** Three revisions each. */
const PACKAGES = 1000;
/** Seconds without work before the requests of an idle installation are counted, and for which they are. */
const CALM_S = 30;
const IDLE_S = 60;
/** Of each failover. */
const ROUNDS = 5;
/** The default of `sluice serve`. */
const LEASE_MS = 15_000;

type Part = (place: ClusterPlace, settings: Settings) => Promise<void>;

interface Settings {
  readonly idleS: number;
  readonly rounds: number;
}

/** Each prints a table, in this order: `idle` comes first, because writes of the other parts lead to syncs and status updates for minutes. */
const PARTS: Readonly<Record<string, Part>> = {
  async idle(place, { idleS }) {
    printTable(['request while idle', `in ${idleS} s`, 'in an hour'], await idleRows(place, idleS));
  },
  async latency({ targets }) {
    printTable(HEAD, [...(await readRows(targets)), await watchRow(targets), ...(await lifecycleRows(targets))]);
  },
  async rates({ targets }) {
    printTable(RATE_HEAD, await rateRows(targets));
  },
  async failover(place, { rounds }) {
    printTable(FAILOVER_HEAD, [
      await failoverRow(place, { signal: 'SIGTERM', rounds, aimMs: 1000 }),
      await failoverRow(place, { signal: 'SIGKILL', rounds, aimMs: LEASE_MS + 2000 }),
    ]);
  },
};

/**
 * Sluice as an extension of a real control plane, beside `sluice up` and beside a plain definition on the same kube-apiserver.
 * `--packages=1000`, `--idle=60` (seconds) and `--rounds=5` (of each failover) change the size; `--parts=idle,latency,rates,failover`
 * chooses tables.
 */
export async function cluster(options: readonly string[] = []): Promise<void> {
  const value = (name: string) => options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  const parts = value('parts')?.split(',') ?? Object.keys(PARTS);
  const settings = { idleS: Number(value('idle') ?? IDLE_S), rounds: Number(value('rounds') ?? ROUNDS) };
  const programs = await clusterPrograms((line) => console.error(line));
  if ('missing' in programs) {
    console.log(`no control plane: ${programs.missing}`);
    return;
  }
  await using place = await openClusterPlace(programs, Number(value('packages') ?? PACKAGES));
  const rows = plainRows(place);
  for (const name of parts) {
    await PARTS[name]?.(place, settings);
    console.log();
  }
  printTable(['installation', 'figure'], [...rows, ...memoryRows(place, 'at the end')]);
}

function plainRows(place: ClusterPlace): string[][] {
  const { startMs, revisions } = place;
  return [
    ['package revisions', `${revisions}`],
    ['start until the leader is ready, without cache', milliseconds(startMs.leader)],
    ['start until the standby is ready to lead, without cache', milliseconds(startMs.standby)],
    ...memoryRows(place, 'after the start'),
  ];
}

function memoryRows({ route, replicas }: ClusterPlace, when: string): string[][] {
  return replicas.map((replica) => {
    const role = replica === route.leader ? 'leader' : 'standby';
    return [
      `resident memory of the ${role}, ${when}`,
      `${Math.round(processLoad(replica.child.pid ?? 0).memory / 1e6)} MB`,
    ];
  });
}

/** Counts what both replicas request without requests of users. */
async function idleRows({ audit }: ClusterPlace, seconds: number): Promise<string[][]> {
  await sleep(CALM_S * 1000);
  const from = Date.now();
  await sleep(seconds * 1000);
  const counts = await audit.count(from, from + seconds * 1000);
  const inAnHour = (count: number) => `${Math.round((count * 3600) / seconds)}`;
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  return [...counts, ['all', total] as const].map(([job, count]) => [job, `${count}`, inAnHour(count)]);
}
