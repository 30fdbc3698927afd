import type { BenchClient } from '../api-client.ts';
import { median, milliseconds, percentile, ratio } from '../table.ts';

/** A server with the path of the objects that it is measured with. */
export interface Target {
  readonly client: BenchClient;
  readonly path: string;
}

/** What is compared, in the same run. */
export interface Targets {
  /** `sluice serve`, through the aggregator of the kube-apiserver. */
  readonly aggregated: Target;
  /** `sluice up`. */
  readonly embedded: Target;
  /** Objects of a plain definition on the kube-apiserver. */
  readonly plain: Target;
}

/** Milliseconds of each call of a job. */
export type Times = Readonly<Record<keyof Targets, number[]>>;

export const HEAD = ['job', 'aggregated', 'p99', 'embedded', 'p99', 'ratio', 'plain CRD', 'p99', 'ratio'];

export const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

/** Runs a job on all targets in turn, so that they have the same load, and returns its row. */
export async function compare(
  job: string,
  targets: Targets,
  run: (target: Target, round: number) => Promise<number>,
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
): Promise<string[]> {
  const times: Times = { aggregated: [], embedded: [], plain: [] };
  for (let round = -warmUp; round < rounds; round += 1)
    for (const name of ['aggregated', 'embedded', 'plain'] as const) {
      const took = await run(targets[name], round);
      if (round >= 0) times[name].push(took);
    }
  return row(job, times);
}

function row(job: string, { aggregated, embedded, plain }: Times): string[] {
  const figures = (all: readonly number[]) => [milliseconds(median(all)), milliseconds(percentile(all, 0.99))];
  const ratioTo = (floor: readonly number[]) => ratio(median(aggregated), median(floor));
  return [job, ...figures(aggregated), ...figures(embedded), ratioTo(embedded), ...figures(plain), ratioTo(plain)];
}

/** Milliseconds that a call takes. */
export async function timed(call: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await call();
  return performance.now() - started;
}
