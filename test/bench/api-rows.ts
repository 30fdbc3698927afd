import type { BenchServer } from './api-processes.ts';
import { median, milliseconds, percentile, ratio } from './table.ts';

/** The two servers that are compared. */
export interface Pair {
  readonly sluice: BenchServer;
  readonly floor: BenchServer;
}

/** Milliseconds of each call, of Sluice and of the floor. */
export interface Latencies {
  readonly ours: number[];
  readonly floor: number[];
}

export interface Aim {
  readonly text: string;
  readonly met: (times: Latencies) => boolean;
}

export const HEAD = ['job', 'median', 'p99', 'floor', 'floor p99', 'ratio', 'aim', 'met'];

export const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

/** The median is at most this many milliseconds. */
export function within(limit: number): Aim {
  return { text: `<= ${limit} ms`, met: ({ ours }) => median(ours) <= limit };
}

/** The median is at most twice that of the floor. */
export const TWICE: Aim = { text: '<= 2.00', met: ({ ours, floor }) => median(ours) <= 2 * median(floor) };

export function latencyRow(job: string, times: Latencies, aim: Aim | undefined): string[] {
  const { ours, floor } = times;
  const figures = [ours, floor].flatMap((all) => [milliseconds(median(all)), milliseconds(percentile(all, 0.99))]);
  return [job, ...figures, ratio(median(ours), median(floor)), aim?.text ?? '', metOf(aim, times)];
}

/** A figure without a floor. */
export function plainRow(job: string, figure: string): string[] {
  return [job, figure, '', '', '', '', '', ''];
}

function metOf(aim: Aim | undefined, times: Latencies): string {
  if (aim === undefined) return '';
  return aim.met(times) ? 'yes' : 'no';
}

export function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
}

/** A ConfigMap of about 500 bytes. */
export function configMap(name: string): object {
  const data = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`key-${index}`, `value-${name}-${index}`]));
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { app: 'bench' } }, data };
}

/** A new package with a draft. */
export function draft(packageName: string): object {
  return {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { namespace: 'default' },
    spec: {
      packageName,
      repository: 'bench',
      workspaceName: 'w1',
      lifecycle: 'Draft',
      tasks: [{ type: 'init', init: { description: 'made by a benchmark' } }],
    },
  };
}
