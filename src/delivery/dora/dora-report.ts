import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { packageKey } from '../selection/select-revisions.ts';
import type { Change } from './change.ts';
import { type Figures, figuresOf, type Period } from './figures.ts';

/** The figures of a target, or of one package in a target. */
export interface DoraRow extends Figures {
  readonly namespace: string;
  readonly target: string;
  /** `<repository>/<path>`; absent for the target as a whole. */
  readonly package?: string;
  /** Start of the time that is covered, RFC 3339: later than the period if earlier changes are not kept. Absent without a history. */
  readonly from?: string;
}

export interface DoraReport {
  /** The period that was asked for, RFC 3339. */
  readonly from: string;
  readonly to: string;
  readonly rows: readonly DoraRow[];
  /** Of all rows together. */
  readonly total: Figures & { readonly from?: string };
}

export interface DoraQuery {
  readonly period: Period;
  readonly by: 'target' | 'package';
  /** `<path>` or `<repository>/<path>`; only of this package. */
  readonly package?: string | undefined;
}

/** The figures of targets over a period. A change in several targets counts in each. */
export function doraReport(targets: readonly DeliveryTarget[], { period, by, package: wanted }: DoraQuery): DoraReport {
  const isWanted = (change: Change) =>
    wanted === undefined || change.package === wanted || packageKey(change) === wanted;
  const rows: DoraRow[] = [];
  const all: Change[] = [];
  let earliest: number | undefined;
  for (const { metadata, status } of targets) {
    const { name, namespace = DEFAULT_NAMESPACE } = metadata;
    const { changes = [], completeFrom } = status?.history ?? {};
    const from = completeFrom === undefined ? undefined : Math.max(period.from, Date.parse(completeFrom));
    const covered = from === undefined ? {} : { from: new Date(from).toISOString() };
    const own = changes.filter(isWanted).filter(({ deliveredAt }) => Date.parse(deliveredAt) >= (from ?? 0));
    if (from !== undefined) earliest = Math.min(earliest ?? from, from);
    all.push(...own);
    const place = { namespace, target: name, ...covered };
    const at = { from: from ?? period.from, to: period.to };
    if (by === 'target') rows.push({ ...place, ...figuresOf(own, at) });
    else
      for (const [key, changesOf] of [...Map.groupBy(own, packageKey)].sort(([a], [b]) => (a < b ? -1 : 1)))
        rows.push({ ...place, package: key, ...figuresOf(changesOf, at) });
  }
  return {
    from: new Date(period.from).toISOString(),
    to: new Date(period.to).toISOString(),
    rows,
    total: {
      ...(earliest === undefined ? {} : { from: new Date(earliest).toISOString() }),
      ...figuresOf(all, { from: earliest ?? period.from, to: period.to }),
    },
  };
}
