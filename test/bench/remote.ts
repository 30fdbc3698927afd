import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { branchesFirst, MIRROR_REFSPECS } from '../../src/package/model/identity/mirror-refspecs.ts';
import { type Burst, burst } from './burst.ts';
import { startServer } from './git-server-process.ts';
import { git, kptfile, manifest, packageName, synthesize } from './synthetic-repository.ts';
import { median, milliseconds, printTable, ratio } from './table.ts';

const SIZES = [1_000, 10_000, 30_000];
const REVISIONS = 3;
const DRAFTS = 600;
const ROUNDS = 5;
const BURST = 1_000;
const APPROVALS = 5;
const MAIN = 'refs/heads/main';
const QUIET = ['-c', 'gc.auto=0', '-c', 'maintenance.auto=false', '-c', 'core.fsync=loose-object,pack,reference'];

interface Job {
  readonly name: string;
  readonly aim: string;
  readonly rounds: number;
  readonly floor: string;
  /** One round of one side, from its mirror: the preparation, then the measured work. */
  prepare(side: Side, round: number): Promise<() => Promise<unknown>>;
}

/** One of the two sides: Sluice, or git's own commands. */
interface Side {
  readonly name: 'sluice' | 'git';
  readonly mirror: GitRepository;
  push(updates: readonly RefUpdate[]): Promise<void>;
  fetch(): Promise<unknown>;
}

/**
 * Pushes, polls and fetches over HTTP against `git push --atomic` and `git fetch` doing the same. `--packages=1000,30000` chooses
 * the sizes.
 */
export async function remote(options: readonly string[] = []): Promise<void> {
  const chosen = options.find((option) => option.startsWith('--packages='))?.slice('--packages='.length);
  const sizes = chosen === undefined ? SIZES : chosen.split(',').map(Number);
  const rows: string[][] = [];
  for (const packages of sizes) {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    try {
      rows.push(...(await measure(folder, packages)));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  printTable(['packages x 3', 'refs', 'job', 'Sluice', 'git', 'ratio', 'aim', 'met', 'git does it by'], rows);
}

async function measure(folder: string, packages: number): Promise<string[][]> {
  const path = join(folder, 'origin.git');
  await synthesize({ path, packages, revisions: REVISIONS, drafts: Math.min(DRAFTS, packages) });
  const server = await startServer(folder);
  const target = { url: `${server.url}/origin.git` };
  const origin = await openRepository(path);
  const sides = [
    await openSide('sluice', join(folder, 'sluice.git'), path, target),
    await openSide('git', join(folder, 'git.git'), path, target),
  ] as const;
  try {
    const { length: refs } = await origin.listRefs();
    const rows: string[][] = [];
    for (const job of jobs(origin, sides)) {
      const times: Record<Side['name'], number[]> = { sluice: [], git: [] };
      for (let round = 0; round <= job.rounds; round++) {
        for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
          const work = await job.prepare(side, round);
          const started = performance.now();
          await work();
          // The first round warms up.
          if (round > 0) times[side.name].push(performance.now() - started);
        }
      }
      const [own, floor] = [median(times.sluice), median(times.git)];
      const met = own / floor <= Number(job.aim.slice(3)) ? 'yes' : 'no';
      const figures = [milliseconds(own), milliseconds(floor), ratio(own, floor)];
      const row = [`${packages}`, `${refs}`, job.name, ...figures, job.aim, met, job.floor];
      console.error(row.join('  '));
      rows.push(row);
    }
    rows.push(...burstRows(`${packages}`, `${refs}`, await burst(target.url, join(folder, 'burst'), BURST, APPROVALS)));
    return rows;
  } finally {
    await Promise.all([origin, ...sides.map(({ mirror }) => mirror)].map((one) => one.close()));
    server.stop();
  }
}

/** Git has no equivalent. */
function burstRows(packages: string, refs: string, { drafts, approvals }: Burst): string[][] {
  const longest = Math.max(...approvals);
  const made = `${BURST} drafts, each made by itself, all at once`;
  const rows = [
    [packages, refs, made, milliseconds(drafts), '', '', '', '', ''],
    [
      packages,
      refs,
      `the longest of ${approvals.length} approvals meanwhile`,
      milliseconds(longest),
      '',
      '',
      '<= 1 s',
      longest <= 1000 ? 'yes' : 'no',
      '',
    ],
  ];
  for (const row of rows) console.error(row.join('  '));
  return rows;
}

function jobs(origin: GitRepository, sides: readonly [Side, Side]): Job[] {
  const pushes = 'git push --atomic --force-with-lease';
  const fetches = 'git fetch --atomic --prune';
  let number = 0;
  /** Both sides have fetched what was pushed. */
  const level = () => Promise.all(sides.map((side) => side.fetch()));
  const newDrafts = async (repository: GitRepository, count: number) => {
    const drafts: RefUpdate[] = [];
    for (let index = 0; index < count; index++, number++)
      drafts.push({ type: 'create', ref: draftRef(number), new: await commitDraft(repository, number) });
    await repository.transaction([]);
    return drafts;
  };
  const draftJob = (name: string, aim: string, count: number, rounds: number): Job => ({
    ...{ name, aim, rounds, floor: pushes },
    async prepare(side) {
      await level();
      const drafts = await newDrafts(side.mirror, count);
      return () => side.push(drafts);
    },
  });
  return [
    {
      ...{ name: 'poll without change', aim: '<= 0.1', rounds: ROUNDS, floor: fetches },
      async prepare(side, round) {
        if (round === 0) await level();
        return () => side.fetch();
      },
    },
    draftJob('push one draft', '<= 0.4', 1, ROUNDS),
    {
      ...{ name: 'push one publish: main, tag, draft removed', aim: '<= 0.4', rounds: ROUNDS, floor: pushes },
      async prepare(side) {
        const [draft] = await newDrafts(side.mirror, 1);
        if (draft?.type !== 'create') throw new Error('no draft was made');
        await side.push([draft]);
        await level();
        const main = await oidOf(side.mirror, MAIN);
        const published = await commitDraft(side.mirror, number - 1, draft.new);
        await side.mirror.transaction([]);
        return () =>
          side.push([
            { type: 'update', ref: MAIN, old: main, new: published },
            { type: 'create', ref: `refs/tags/${packageName(number - 1)}/v${number}`, new: published },
            { type: 'delete', ref: draft.ref, old: draft.new },
          ]);
      },
    },
    draftJob('push 100 drafts at once', '<= 0.1', 100, 2),
    {
      ...{ name: 'fetch 10 changes', aim: '<= 0.5', rounds: ROUNDS, floor: fetches },
      async prepare(side) {
        // Created once for both, so that they fetch the same.
        await level();
        await origin.transaction(await newDrafts(origin, 10));
        return () => side.fetch();
      },
    },
  ];
}

async function openSide(name: Side['name'], path: string, origin: string, target: GitRemote): Promise<Side> {
  await git(['clone', '--quiet', '--mirror', origin, path]);
  const mirror = await openRepository(path, { transport: name === 'git' ? 'git' : 'auto' });
  if (name === 'sluice') {
    return {
      ...{ name, mirror },
      push: (updates) => mirror.push(target, updates),
      fetch: () => mirror.fetch(target, { ...branchesFirst(MAIN), prune: true }),
    };
  }
  const call = [...QUIET, '-C', path];
  return {
    ...{ name, mirror },
    async push(updates) {
      const leases = updates.map((update) => `--force-with-lease=${update.ref}:${'old' in update ? update.old : ''}`);
      const refspecs = updates.map((update) => `${'new' in update ? update.new : ''}:${update.ref}`);
      await git([...call, 'push', '--quiet', '--atomic', ...leases, target.url, ...refspecs]);
    },
    fetch: () =>
      git([
        ...call,
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-write-fetch-head',
        '--atomic',
        '--prune',
        target.url,
        ...MIRROR_REFSPECS,
      ]),
  };
}

/** A change of two files of a package, on main or on another commit. */
async function commitDraft(repository: GitRepository, number: number, parent?: Oid): Promise<Oid> {
  const main = await oidOf(repository, MAIN);
  const path = packageName(number % 500);
  const edits = new Map([
    [`${path}/Kptfile`, { data: Buffer.from(kptfile(number, 1000 + number)) }],
    [`${path}/config-0.yaml`, { data: Buffer.from(manifest(number, 0, 1000 + number)) }],
  ]);
  const person = { name: 'bench', email: 'bench@example.com', time: 1_767_225_600_000 };
  return await repository.writeCommit({
    tree: await repository.editTree(main, edits),
    parents: parent === undefined ? [main] : [main, parent],
    author: person,
    committer: person,
    message: `draft ${number}\n`,
  });
}

function draftRef(number: number): string {
  return `refs/heads/drafts/bench/package-${number}/w`;
}

async function oidOf(repository: GitRepository, ref: string): Promise<Oid> {
  const oid = await repository.resolveRef(ref);
  if (oid === undefined) throw new Error(`${ref} is missing`);
  return oid;
}
