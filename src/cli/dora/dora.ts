import { type DoraReport, type DoraRow, doraReport } from '../../delivery/dora/dora-report.ts';
import type { Figures, Percentiles } from '../../delivery/dora/figures.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { shortDuration } from '../../foundation/time/age.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import { inAccess } from '../access/in-access.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import { expectTarget, targetsOf } from '../target/target-get.ts';

export interface DoraOptions extends PlaceOptions {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
  readonly allNamespaces?: boolean;
  readonly target?: string;
  readonly package?: string;
  readonly by: 'target' | 'package';
  readonly since: string;
}

const DAY_MS = 86_400_000;
const NO_DATA = 'no data';
const COLUMNS = [
  ...['Deployments', 'Per day', 'Lead time p50', 'Lead time p90', 'Failed changes'],
  ...['Time to restore p50', 'Time to restore p90'],
];

/** `sluice dora` */
export function dora(options: DoraOptions, invocation: Invocation): Promise<CommandResult> {
  const { target, output, headers, by, allNamespaces = false } = options;
  const sinceMs = periodOf(options.since);
  if (target !== undefined && allNamespaces)
    throw new SluiceError('InvalidInput', '--target names a target of one namespace; leave out -A, or name it with -n');
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const targets =
      target === undefined
        ? await targetsOf(access, allNamespaces ? undefined : access.namespace)
        : [await expectTarget(access, target)];
    const to = access.clock.now();
    const report = doraReport(targets, { period: { from: to - sinceMs, to }, by, package: options.package });
    if (output === 'json') terminal.out.write(toJson(report));
    else if (output === 'yaml') terminal.out.write(toYaml(report));
    else if (report.rows.length === 0) terminal.note(targets.length === 0 ? 'No targets found' : 'No changes found');
    else {
      terminal.out.write(textOf(report, { by, headers, showNamespace: allNamespaces }));
      for (const note of coverageNotes(report)) terminal.note(note);
    }
    return 0;
  });
}

/** Milliseconds of a duration; days are permitted besides the units of Go. */
function periodOf(since: string): number {
  const [, days] = /^(\d{1,5})d$/.exec(since) ?? [];
  const period = days === undefined ? parseDuration(since) : Number(days) * DAY_MS;
  if (period === undefined || period <= 0)
    throw new SluiceError('InvalidInput', `--since ${since} is no duration; use one such as 12h or 30d`);
  return period;
}

interface TextOptions {
  readonly by: 'target' | 'package';
  readonly headers: boolean;
  readonly showNamespace: boolean;
}

function textOf({ rows, total }: DoraReport, { by, headers, showNamespace }: TextOptions): string {
  const names = [...(showNamespace ? ['Namespace'] : []), 'Target', ...(by === 'package' ? ['Package'] : [])];
  const nameOf = (row: DoraRow) => [
    ...(showNamespace ? [row.namespace] : []),
    row.target,
    ...(by === 'package' ? [row.package ?? ''] : []),
  ];
  const lines = rows.map((row) => [...nameOf(row), ...cellsOf(row)]);
  const all = ['(all)', ...names.slice(1).map(() => '')];
  return table([...names, ...COLUMNS], [...lines, [...all, ...cellsOf(total)]], { headers });
}

function cellsOf(figures: Figures): string[] {
  const { deployments, deploymentsPerDay, leadTime, timeToRestore } = figures;
  return [
    deployments === 0 ? NO_DATA : String(deployments),
    deploymentsPerDay === undefined ? NO_DATA : numberText(deploymentsPerDay),
    ...percentileCells(leadTime),
    failureText(figures),
    ...percentileCells(timeToRestore),
  ];
}

function failureText({ failedChanges, judgedChanges, changeFailureRate }: Figures): string {
  if (changeFailureRate === undefined) return NO_DATA;
  return `${failedChanges} of ${judgedChanges} (${Math.round(changeFailureRate * 100)}%)`;
}

function percentileCells(percentiles: Percentiles | undefined): string[] {
  if (percentiles === undefined) return [NO_DATA, NO_DATA];
  return [percentiles.p50Seconds, percentiles.p90Seconds].map((seconds) => shortDuration(seconds * 1000));
}

function numberText(value: number): string {
  return value >= 0.01 ? String(Number(value.toPrecision(3))) : '<0.01';
}

/** Notes about targets whose history does not reach back far enough. */
function coverageNotes({ rows, from }: DoraReport): string[] {
  const late = new Map(
    rows.flatMap((row) =>
      row.from === undefined || row.from <= from ? [] : [[`${row.namespace}/${row.target}`, row]],
    ),
  );
  return [...late.values()].map(
    (row) =>
      `target ${printable(row.target)}: its history begins at ${row.from}, so its figures are of the time since then`,
  );
}
