import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { milliseconds, percentile, printTable, ratio } from '../table.ts';
import { type FanOut, type FanOutSize, fanOut } from './fan-out.ts';
import { mergeRate } from './merge-rate.ts';
import { waveOf } from './wave.ts';

const TARGETS = [10, 100, 1_000];
const TARGETS_PER_REPOSITORY = 20;
const WAVE_TARGETS = 300;

/**
 * One blueprint for many targets, behind Git over HTTP: the drafts of its next revision, and the rate of merges. `--parts=fan-out,merge`
 * chooses tables, `--targets=10,100` sizes, `--per-repository=1` how many targets share a repository. With `--clones` the drafts are those of first
 * revisions, which takes a third of the time.
 */
export async function fleet(options: readonly string[] = []): Promise<void> {
  const value = (name: string) => options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  const parts = value('parts')?.split(',') ?? ['fan-out', 'wave', 'merge'];
  if (parts.includes('fan-out')) {
    const sizes = value('targets')?.split(',').map(Number) ?? TARGETS;
    const perRepository = Number(value('per-repository') ?? TARGETS_PER_REPOSITORY);
    await fanOuts(sizes, { perRepository, clones: options.includes('--clones') });
  }
  if (parts.includes('wave')) await waves();
  if (parts.includes('merge')) mergeRate();
}

/** A wave of 300 approvals, in repositories of 20 and in one. */
async function waves(): Promise<void> {
  const rows: string[][] = [];
  for (const perRepository of [TARGETS_PER_REPOSITORY, WAVE_TARGETS]) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    try {
      const { targets, repositories, elapsed, pushes, commits } = await waveOf(folder, {
        targets: WAVE_TARGETS,
        perRepository,
      });
      rows.push([`${targets}`, `${repositories}`, milliseconds(elapsed), `${pushes}`, `${commits}`]);
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
    }
  }
  printTable(['approvals', 'repositories', 'wave', 'pushes', 'commits'], rows);
}

async function fanOuts(sizes: readonly number[], how: Omit<FanOutSize, 'targets'>): Promise<void> {
  const results: FanOut[] = [];
  for (const targets of sizes) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    try {
      const result = await fanOut(folder, { targets, ...how });
      results.push(result);
      console.error(rowOf(result).join('  '));
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
    }
  }
  printTable(
    [
      ...['targets', 'repositories', 'new drafts', 'fast-import + push', 'ratio', 'commits', 'pushes', 'fetches'],
      ...['CPU per target', 'memory, most', 'approval, p50', 'approval, most', 'first clones, published', 'load'],
    ],
    results.map(rowOf),
  );
  const [hundred, last] = [results.find(({ targets }) => targets === 100), results.at(-1)];
  if (hundred === undefined || last === undefined || hundred === last) return;
  const growth = (of: (result: FanOut) => number) => ratio(of(last) / last.targets, of(hundred) / hundred.targets);
  console.log(`\nCost per target at ${last.targets} against 100, aim <= 1.2:`);
  console.log(
    `time ${growth(({ elapsed }) => elapsed)}, CPU ${growth(({ cpu }) => cpu)}, git ${growth(({ floor }) => floor)}\n`,
  );
}

function rowOf(result: FanOut): string[] {
  const { targets, repositories, elapsed, floor, commits, traffic, cpu, memory, approvals, load, first } = result;
  return [
    ...[`${targets}`, `${repositories}`, milliseconds(elapsed), milliseconds(floor), ratio(elapsed, floor)],
    ...[`${commits}`, `${traffic.pushes}`, `${traffic.fetches}`],
    ...[milliseconds((cpu * 1000) / targets), `${Math.round(memory / 1e6)} MB`],
    ...[milliseconds(percentile(approvals, 0.5)), milliseconds(Math.max(...approvals))],
    ...[first === undefined ? '' : milliseconds(first), load.toFixed(0)],
  ];
}
