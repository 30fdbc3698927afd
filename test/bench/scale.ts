import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Curve, growthPlot } from './growth-plot.ts';
import { readFloor } from './lifecycle.ts';
import { NODE_FLAGS } from './node-flags.ts';
import { publishAtOnce } from './publish-at-once.ts';
import { publishOneByOne } from './publish-one-by-one.ts';
import type { Opened, Used } from './scale-process.ts';
import { type Layout, publicationsPerCommit, synthesizeAtScale } from './scale-repository.ts';
import { milliseconds, printTable, ratio } from './table.ts';

const SIZES = [1_000, 10_000, 30_000];
const LAYOUTS: readonly Layout[] = ['nested', 'flat'];
const REVISIONS = 3;
/** Bounds on a whole lifecycle are stated for repositories of 30,000 revisions. */
const AIMED = 10_000;
/** The text colour of the plot; each series has another colour. */
const LEFT_OUT = ['cold index without parsing', 'objects of all revisions for clients', 'write a label'];
const AT_ONCE = 500;
const ONE_BY_ONE = 100;
/** Bytes that the root trees of all drafts and publications of one job may use together. */
const MAX_WRITTEN = 150_000_000;

/** The results of one repository in milliseconds, for the plot and the growth of each operation. */
interface Measured {
  readonly packages: number;
  readonly layout: Layout;
  readonly figures: ReadonlyMap<string, number>;
}

type Row = readonly string[];

/**
 * Index, reads, watches and lifecycles of repositories with up to 90,000 tags. `--packages=1000,10000` and `--layout=nested,flat`
 * choose what is measured, `--svg=<file>` writes a plot of how the cost of each operation grows.
 */
export async function scale(options: readonly string[] = []): Promise<void> {
  const sizes = chosen(options, 'packages')?.map(Number) ?? SIZES;
  const layouts = (chosen(options, 'layout') as Layout[] | undefined) ?? LAYOUTS;
  const measured: Measured[] = [];
  const rows: Row[] = [];
  for (const layout of layouts)
    for (const packages of sizes) measured.push(await inFolder((folder) => measure(folder, packages, layout, rows)));
  const history = await inFolder((folder) => historyRows(folder));
  console.log('');
  printTable(['packages x 3', 'layout', 'job', 'Sluice', 'floor', 'ratio', 'aim', 'met', 'floor is'], rows);
  console.log('\nThe same refs with ten times the commits:\n');
  printTable(['job', 'commits', 'ten times', 'ratio'], history);
  if (sizes.length > 1) {
    console.log('\nGrowth:\n');
    const ends = `${sizes[0]} to ${sizes.at(-1)}`;
    printTable(['job', 'layout', `from ${ends} packages`, 'times the packages'], growthRows(measured));
  }
  const [svg] = chosen(options, 'svg') ?? [];
  if (svg !== undefined)
    await writeFile(svg, growthPlot(curvesOf(measured).filter(({ job }) => !LEFT_OUT.includes(job))));
}

function chosen(options: readonly string[], name: string): string[] | undefined {
  return options
    .find((option) => option.startsWith(`--${name}=`))
    ?.slice(`--${name}=`.length)
    .split(',');
}

async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(folder: string, packages: number, layout: Layout, rows: Row[]): Promise<Measured> {
  const path = join(folder, 'bench.git');
  const options = { path, packages, revisions: REVISIONS, layout };
  await synthesizeAtScale(options);
  const figures = new Map<string, number>();
  const note = (
    job: string,
    own: number,
    floor?: { readonly value: number; readonly is: string },
    aim?: number,
    per = 1,
  ) => {
    figures.set(job, own / per);
    const factor = floor === undefined ? '' : ratio(own, floor.value);
    const met = aim === undefined || floor === undefined ? '' : own / floor.value <= aim ? 'yes' : 'no';
    const figure = floor === undefined ? '' : milliseconds(floor.value);
    const bound = aim === undefined ? '' : `<= ${aim}`;
    add([`${packages}`, layout, job, milliseconds(own), figure, factor, bound, met, floor?.is ?? '']);
  };
  const add = (row: Row) => {
    console.error(row.join('  '));
    rows.push(row);
  };
  const bounded = (job: string, own: number, limit: number, unit: string) =>
    add([
      ...[`${packages}`, layout, job, `${own.toFixed(0)} ${unit}`, '', ''],
      ...(packages === AIMED ? [`<= ${limit} ${unit}`, own <= limit ? 'yes' : 'no'] : ['', '']),
      '',
    ]);

  const shared = publicationsPerCommit(options);
  const reads = { value: await readFloor(path), is: 'for-each-ref + cat-file --batch of the same Kptfiles' };
  const cold = await inProcess<Opened>('open', path, `${path}.cache`);
  const commits = shared === 1 ? '' : `, ${shared} a commit`;
  note(`cold index, ${cold.revisions} revisions${commits}`, cold.open, reads, 5);
  figures.set('cold index', cold.open);
  note('cold index without parsing', cold.open - (cold.parse ?? 0), reads, 2);
  const warm = await inProcess<Used>('use', path, `${path}.cache`);
  figures.set('warm restart', warm.open);
  bounded('warm restart', warm.open, 1000, 'ms');
  bounded('memory, cold', cold.memory, 350, 'MB');
  bounded('memory, warm', warm.memory, 350, 'MB');
  bounded('event loop held up at most, cold', cold.held, 50, 'ms');
  bounded('event loop held up at most, warm', warm.held, 50, 'ms');
  note('objects of all revisions for clients', warm.table);
  note('list one package by field', warm.listOne);
  note('list 500 of the latest by label', warm.listLatest);
  note('read one package', warm.read);
  note('write a label', warm.write);
  note('until a watcher knows of it', warm.watch);
  await publishRows(path, packages, layout, note);
  return { packages, layout, figures };
}

async function publishRows(
  path: string,
  packages: number,
  layout: Layout,
  note: (job: string, own: number, floor: { value: number; is: string }, aim: number, per?: number) => void,
): Promise<void> {
  const rootBytes = layout === 'flat' ? packages * 40 : 0;
  const most = rootBytes === 0 ? AT_ONCE : Math.floor(MAX_WRITTEN / (2 * rootBytes));
  const oneByOne = Math.min(ONE_BY_ONE, most);
  const single = await publishOneByOne(path, `${path}.one`, oneByOne);
  const replayed = { value: single.floor, is: 'same objects and refs, same fsync, 3 transactions' };
  note(`Draft to Published, each of ${oneByOne}`, single.elapsed, replayed, 1.5);
  const count = Math.min(AT_ONCE, most);
  const all = await publishAtOnce(path, `${path}.all`, count);
  const capped = count < AT_ONCE ? ` (${AT_ONCE} would write ${Math.round((2 * AT_ONCE * rootBytes) / 1e6)} MB)` : '';
  const imported = { value: all.floor, is: 'git fast-import of the same commits, files and refs' };
  // The plot shows one of them, since there are not as many everywhere.
  note(`Draft to Published, ${count} at once${capped}`, all.elapsed, imported, 2, count);
}

/** An operation that reads every ref must not read the history behind it. */
async function historyRows(folder: string): Promise<Row[]> {
  const taken: Map<string, number>[] = [];
  for (const between of [0, 9]) {
    const path = join(folder, `history-${between}.git`);
    await synthesizeAtScale({ path, packages: 1000, revisions: REVISIONS, layout: 'nested', between });
    const cold = await inProcess<Opened>('open', path, `${path}.cache`);
    const warm = await inProcess<Used>('use', path, `${path}.cache`);
    const { elapsed } = await publishOneByOne(path, `${path}.one`, ONE_BY_ONE);
    taken.push(
      new Map([
        ['cold index', cold.open],
        ['warm restart', warm.open],
        ['read one package', warm.read],
        ['write a label', warm.write],
        ['Draft to Published, each', elapsed],
      ]),
    );
  }
  const [few, many] = taken;
  return [...(few ?? [])].map(([job, value]) => {
    const ten = many?.get(job) ?? Number.NaN;
    return [job, milliseconds(value), milliseconds(ten), ratio(ten, value)];
  });
}

/** Without the counts that differ from size to size. */
function jobOf(label: string): string {
  return label.replace(/, (?:each of )?\d+.*$/, (rest) =>
    rest.includes('at once') ? ', at once, each' : rest.includes('each') ? ', one by one' : '',
  );
}

function curvesOf(measured: readonly Measured[]): Curve[] {
  const curves = new Map<string, { job: string; layout: Layout; points: [number, number][] }>();
  for (const { packages, layout, figures } of measured)
    for (const [label, value] of figures) {
      const job = jobOf(label);
      const curve = curves.get(`${layout} ${job}`) ?? { job, layout, points: [] };
      const point = curve.points.find(([x]) => x === packages);
      if (point === undefined) curve.points.push([packages, value]);
      curves.set(`${layout} ${job}`, curve);
    }
  return [...curves.values()];
}

function growthRows(measured: readonly Measured[]): Row[] {
  return curvesOf(measured).map(({ job, layout, points }) => {
    const [first, last] = [points[0] ?? [0, 0], points.at(-1) ?? [0, 0]];
    return [
      job,
      layout,
      `${milliseconds(first[1])} to ${milliseconds(last[1])}`,
      ratio(last[1] / first[1], last[0] / first[0]),
    ];
  });
}

async function inProcess<Result>(job: 'open' | 'use', path: string, cacheFile: string): Promise<Result> {
  const script = fileURLToPath(new URL('scale-process.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [...NODE_FLAGS, script, job, path, cacheFile]);
  return JSON.parse(stdout) as Result;
}
