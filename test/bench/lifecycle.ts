import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readKptfile } from '../../kptfile-schema/index.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { NODE_FLAGS } from './node-flags.ts';
import { openBench } from './open-bench.ts';
import { publishOneByOne } from './publish-one-by-one.ts';
import { git, synthesize } from './synthetic-repository.ts';
import { median, milliseconds, printTable, ratio } from './table.ts';

const ROUNDS = 5;
const PUBLISHED = 100;

/** Index and lifecycle of synthetic repositories against native git doing the same reads and writes. */
export async function lifecycle(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const rows: string[][] = [];
  try {
    for (const packages of [100, 1_000]) {
      const path = join(folder, `${packages}.git`);
      await synthesize({ path, packages, revisions: 3, drafts: packages / 10 });
      rows.push(...(await indexRows(path, folder, packages)));
      rows.push(...(await publishRows(path, folder, packages)));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  printTable(['packages x 3', 'job', 'Sluice', 'floor', 'ratio', 'aim', 'floor is'], rows);
}

async function indexRows(path: string, folder: string, packages: number): Promise<string[][]> {
  const cacheFile = join(folder, `cache-${packages}`);
  const floors: number[] = [];
  const colds: number[] = [];
  const parses: number[] = [];
  const warms: number[] = [];
  let revisions = 0;
  for (let round = 0; round < ROUNDS; round++) {
    floors.push(await readFloor(path));
    await rm(cacheFile, { force: true });
    const started = performance.now();
    const repository = await openBench(path, cacheFile);
    colds.push(performance.now() - started);
    revisions = [...repository.index.all()].length;
    const texts = await kptfileTexts(repository);
    const parsing = performance.now();
    for (const text of texts) readKptfile(text);
    parses.push(performance.now() - parsing);
    await repository.close();
    const restarted = performance.now();
    const warm = await openBench(path, cacheFile);
    warms.push(performance.now() - restarted);
    await warm.close();
  }
  const [floor, cold, parse, warm] = [floors, colds, parses, warms].map(median) as [number, number, number, number];
  const memory = await indexMemory(path);
  const size = `${packages}`;
  const reads = 'for-each-ref + cat-file --batch of the same Kptfiles';
  return [
    [
      size,
      `cold index, ${revisions} revisions`,
      milliseconds(cold),
      milliseconds(floor),
      ratio(cold, floor),
      '<= 5',
      reads,
    ],
    [
      size,
      'cold index without parsing',
      milliseconds(cold - parse),
      milliseconds(floor),
      ratio(cold - parse, floor),
      '<= 2',
      reads,
    ],
    [size, 'warm restart', milliseconds(warm), '', '', '<= 200 ms at 1,000', ''],
    [
      size,
      'memory of a cold index',
      `${memory} MB`,
      '',
      '',
      '',
      'resident memory that opening it adds in a new process',
    ],
  ];
}

async function indexMemory(path: string): Promise<string> {
  const script = fileURLToPath(new URL('index-memory.ts', import.meta.url));
  return (await promisify(execFile)(process.execPath, [...NODE_FLAGS, script, path])).stdout.trim();
}

/** Lists refs and reads the Kptfile of every tag and draft, in two git processes, without parsing the contents. */
export async function readFloor(path: string): Promise<number> {
  const started = performance.now();
  const refs = (await git(['-C', path, 'for-each-ref', '--format=%(objectname) %(refname)']))
    .toString()
    .trimEnd()
    .split('\n');
  const wanted = refs.flatMap((line) => {
    const [oid, name] = line.split(' ') as [string, string];
    const match = /^refs\/(?:tags|heads\/drafts)\/(.+)\/[^/]+$/.exec(name);
    return match === null ? [] : [`${oid}:${match[1]}/Kptfile`];
  });
  await git(['-C', path, 'cat-file', '--batch', '--buffer'], `${wanted.join('\n')}\n`);
  return performance.now() - started;
}

export async function kptfileTexts(repository: PackageRepository): Promise<Buffer[]> {
  const blobs = new Set([...repository.index.all()].flatMap((revision) => revision.tip.kptfileBlob ?? []));
  const objects = await repository.git.readObjects([...blobs]);
  return objects.flatMap((object) => object?.data ?? []);
}

/** Draft to Published one by one, and the same objects and refs replayed into a copy. */
async function publishRows(path: string, folder: string, packages: number): Promise<string[][]> {
  const { elapsed, floor } = await publishOneByOne(path, join(folder, `${packages}`), PUBLISHED);
  return [
    [
      `${packages}`,
      `Draft to Published, each of ${PUBLISHED}`,
      milliseconds(elapsed),
      milliseconds(floor),
      ratio(elapsed, floor),
      '<= 1.5',
      'same objects and refs, same fsync, 3 transactions',
    ],
  ];
}
