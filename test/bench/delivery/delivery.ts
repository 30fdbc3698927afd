import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { deliveryController } from '../../../controllers/delivery/delivery-controller.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { ANNA, type Fixture, fixture } from '../../support/fixture.ts';
import { startServer } from '../git-server-process.ts';
import { processLoad } from '../process-load.ts';
import { addRevision, git, kptfile, manifest, packageName, synthesize } from '../synthetic-repository.ts';
import { median, milliseconds, percentile, printTable, ratio } from '../table.ts';
import { engines } from './engines.ts';

const SIZES = [100, 1_000, 6_000];
const ROUNDS = 15;
const WARM_UP = 3;
/** Milliseconds between two looks at the branch of the target. */
const LOOK_MS = 1;
const PATIENCE_MS = 600_000;
const MB = 1024 * 1024;

interface OneChange {
  readonly packages: number;
  /** Milliseconds from the request of each approval to the commit at the remote. */
  readonly times: readonly number[];
  readonly floors: readonly number[];
  /** Milliseconds of CPU of each change, from the approval to the commit. */
  readonly cpu: readonly number[];
}

/**
 * Delivery to Git alone, and to the engines. `--parts=commits,engines` chooses tables, `--packages=100,1000` the sizes of the first one.
 */
export async function delivery(options: readonly string[] = []): Promise<void> {
  const value = (name: string) => options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  const parts = value('parts')?.split(',') ?? ['commits', 'engines'];
  if (parts.includes('commits')) await commits(value('packages')?.split(',').map(Number) ?? SIZES);
  if (parts.includes('engines')) await engines();
}

/**
 * A target of 100, 1,000 and 6,000 packages behind Git over HTTP: one changed package from the approval to the commit, and all packages
 * changed at once.
 */
async function commits(sizes: readonly number[]): Promise<void> {
  const rows: string[][] = [];
  const changes: OneChange[] = [];
  for (const packages of sizes) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    try {
      const { one, more } = await measure(folder, packages);
      changes.push(one);
      rows.push(...rowsOf(one), ...more);
      for (const row of [...rowsOf(one), ...more]) console.error(row.join('  '));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  printTable(['packages', 'job', 'Sluice', 'git', 'ratio', 'git does it by'], rows);
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined || first === last) return;
  console.log(`\nOne change at ${last.packages} packages against one at ${first.packages}; aim <= 1.5:\n`);
  const growth = (name: string, of: (change: OneChange) => number, format: (value: number) => string) => [
    ...[name, format(of(last)), format(of(first)), ratio(of(last), of(first))],
  ];
  printTable(
    ['one change', `${last.packages}`, `${first.packages}`, 'ratio'],
    [
      growth('median', ({ times }) => median(times), milliseconds),
      growth('p95', ({ times }) => percentile(times, 0.95), milliseconds),
      growth('CPU, median', ({ cpu }) => median(cpu), milliseconds),
      growth('git, median', ({ floors }) => median(floors), milliseconds),
    ],
  );
}

function rowsOf({ packages, times, floors, cpu }: OneChange): string[][] {
  const floor = median(floors);
  const by = 'fast-import of the same commit, push';
  return [
    [
      `${packages}`,
      'one change, median',
      milliseconds(median(times)),
      milliseconds(floor),
      ratio(median(times), floor),
      by,
    ],
    [
      ...[`${packages}`, 'one change, p95', milliseconds(percentile(times, 0.95))],
      ...[milliseconds(percentile(floors, 0.95)), ratio(percentile(times, 0.95), percentile(floors, 0.95)), by],
    ],
    [`${packages}`, 'one change, CPU of Sluice', milliseconds(median(cpu)), '', '', ''],
  ];
}

async function measure(folder: string, packages: number): Promise<{ one: OneChange; more: string[][] }> {
  const source = join(folder, 'apps.git');
  const site = join(folder, 'site.git');
  await synthesize({ path: source, packages, revisions: 1, drafts: 0 });
  await git(['init', '--quiet', '--bare', '--initial-branch=main', site]);
  const server = await startServer(folder);
  const world = await fixture();
  try {
    const { client, store, clock } = world;
    await world.register('apps', { repo: source });
    world.manager.addController(
      deliveryController({
        ...{ client, store, clock, dataFolder: join(folder, 'data'), git: { network: DEFAULT_NETWORK } },
        recorder: world.recorder('controller:delivery'),
      }),
    );
    // The packages were published by git, without a statement.
    await client.create(deliveryTargetKind, {
      metadata: { name: 'site' },
      spec: { selector: {}, allowOutOfBand: true, git: { repo: `${server.url}/site.git`, directory: 'clusters/site' } },
    });
    const branch = new Branch(site);
    const before = processLoad(process.pid).memory;
    const first = await timed(async () => {
      await world.manager.start();
      await branch.changed();
    });
    await world.manager.idle();
    const one = await changeOne(world, branch, { url: `${server.url}/site.git`, packages });
    const all = await changeAll(world, branch, source, packages);
    const memory = processLoad(process.pid).memory - before;
    const size = `${packages}`;
    return {
      one,
      more: [
        [size, 'first delivery of all', milliseconds(first), '', '', ''],
        [size, 'all changed at once', milliseconds(all), '', '', ''],
        [size, 'memory that this added', `${Math.round(memory / MB)} MB`, '', '', ''],
      ],
    };
  } finally {
    await world[Symbol.asyncDispose]();
    server.stop();
  }
}

interface ChangedPlace {
  readonly url: string;
  readonly packages: number;
}

/** Approves one package after the other, and replays each commit of the target with git's own programs. */
async function changeOne(world: Fixture, branch: Branch, { url, packages }: ChangedPlace): Promise<OneChange> {
  const [times, floors, cpu]: [number[], number[], number[]] = [[], [], []];
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const number = Math.floor(((round + WARM_UP) * packages) / (ROUNDS + WARM_UP));
    const path = packageName(number);
    const copy = { type: 'copy', source: `apps.${path.replaceAll('/', '.')}.w1` } as const;
    const draft = await world.store.create(
      'apps',
      { package: path, workspace: `next${round + WARM_UP}`, source: copy },
      ANNA,
    );
    // Without gates, since nothing opens them here.
    const files = new Map([
      ['Kptfile', Buffer.from(kptfile(number, 2).replace(/ {2}readinessGates:\n.*\n/, ''))],
      ['config-0.yaml', Buffer.from(manifest(number, 0, 1000 + round))],
    ]);
    await world.store.change(draft.name, { files }, ANNA);
    await world.store.update(draft.name, { action: 'propose' }, ANNA);
    await world.manager.idle();
    const used = process.cpuUsage();
    const time = await timed(async () => {
      await world.store.update(draft.name, { action: 'approve' }, ANNA);
      await branch.changed();
    });
    const { user, system } = process.cpuUsage(used);
    await world.manager.idle();
    const floor = await replay(branch, url);
    if (round < 0) continue;
    times.push(time);
    cpu.push((user + system) / 1000);
    floors.push(floor);
  }
  return { packages, times, floors, cpu };
}

/** Publishes a second revision of every package at once, outside of Sluice, and lets Sluice look. */
async function changeAll(world: Fixture, branch: Branch, source: string, packages: number): Promise<number> {
  await addRevision(source, packages, 5);
  await world.manager.idle();
  branch.look();
  return timed(async () => {
    world.store.announce(await world.store.repository('default/apps').refresh());
    await branch.changed();
  });
}

/** Commits the files of the last commit of a branch again on its parent, and pushes the commit to another branch. */
async function replay(branch: Branch, url: string): Promise<number> {
  const changed = (
    await git(['-C', branch.path, 'diff-tree', '-r', '--no-commit-id', '-z', 'main~1', 'main'])
  ).toString();
  const fields = changed.split('\0');
  const files: { readonly path: string; readonly data: Buffer }[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const oid = fields[at]?.split(' ')[3] ?? '';
    files.push({ path: fields[at + 1] ?? '', data: await git(['-C', branch.path, 'cat-file', 'blob', oid]) });
  }
  const copy = `${branch.path}-floor`;
  await git(['clone', '--quiet', '--bare', branch.path, copy]);
  try {
    const text = [
      'commit refs/heads/floor\ncommitter bench <bench@example.com> 1767225600 +0000\ndata 5\nfloor\nfrom refs/heads/main~1\n',
      ...files.map(({ path, data }) => `M 100644 inline ${path}\ndata ${data.length}\n${data.toString()}\n`),
    ].join('');
    return await timed(async () => {
      await git(['-C', copy, '-c', 'core.fsync=all', 'fast-import', '--quiet'], text);
      await git(['-C', copy, 'push', '--quiet', url, 'refs/heads/floor:refs/heads/floor']);
    });
  } finally {
    await git(['-C', branch.path, 'update-ref', '-d', 'refs/heads/floor']);
    await rm(copy, { recursive: true, force: true });
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The branch of the target at the server. */
class Branch {
  readonly path: string;
  #seen: string | undefined;

  constructor(path: string) {
    this.path = path;
  }

  look(): void {
    this.#seen = this.#read();
  }

  /** Resolves once the branch has another commit than at the last look. */
  async changed(): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (this.#read() === this.#seen) {
      if (performance.now() > end) throw new Error(`no commit within ${PATIENCE_MS} ms`);
      await delay(LOOK_MS);
    }
    this.look();
  }

  #read(): string | undefined {
    try {
      return readFileSync(join(this.path, 'refs/heads/main'), 'latin1');
    } catch {
      return undefined;
    }
  }
}
