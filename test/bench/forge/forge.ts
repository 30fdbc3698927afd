import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { giteaProgram } from '../../forge/support/gitea-program.ts';
import { RunningUp } from '../../support/api/running-up.ts';
import { freePort } from '../../support/free-port.ts';
import { processLoad } from '../process-load.ts';
import { milliseconds, percentile, printTable } from '../table.ts';
import type { ApiRequest, BenchHost } from './bench-host.ts';
import { GiteaHost } from './gitea-host.ts';
import { GitHubHost } from './github-host.ts';
import { type IdleHour, idleHours } from './idle-hour.ts';
import { printRequests } from './request-kinds.ts';
import { configure, countPublished, createDrafts, type PublishOn, propose, register } from './sluice-place.ts';
import { forEachConcurrently, until } from './waiting.ts';

/** Requests that the clients of the benchmark have under way at the same time. */
const CONCURRENCY = 8;
/** Reviews of which the time until the updated check is measured, one after the other. */
const LATENCIES = 20;
/** Between two reads of a check. */
const STATE_STEP_MS = 20;
/** Without a request, Sluice has nothing to do any more. */
const QUIET_MS = 3000;
const SIZES = [20, 50, 200];
/** Open pull requests of the idle hour. */
const IDLE_PULLS = 1000;

interface Measured {
  readonly count: number;
  readonly opening: readonly ApiRequest[];
  readonly publishing: readonly ApiRequest[];
  /** Milliseconds. */
  readonly openedMs: number;
  readonly publishedMs: number;
  readonly latencies: readonly number[];
  /** Seconds of CPU of Sluice with its processes of Git, from the proposals on; of the benchmark alone, which the checked server is in, too. */
  readonly cpu: number;
  readonly ownCpu: number;
}

/**
 * Proposals as pull requests of a host on loopback, for each size in a repository of its own: all proposed at once, then approved by reviews of a
 * second user, all at once; before that, reviews that request changes, one after the other, from the webhook until the check is updated.
 * With `--publish-on=merge` the second user merges all with the button after the reviews, which publishes them.
 * Then an idle hour with 1,000 open pull requests, by a clock of its own.
 * `--hosts=gitea,github`, `--proposals=20,50,200`, `--latencies=20`, `--idle=1000` (0 for none) and `--details` (each kind of request) choose what is
 * measured.
 */
export async function forge(options: readonly string[] = []): Promise<void> {
  const hosts = (wordIn(options, 'hosts') ?? 'gitea,github').split(',').filter((name) => name !== 'none');
  const sizes = wordIn(options, 'proposals')?.split(',').map(Number) ?? SIZES;
  const publishOn: PublishOn = wordIn(options, 'publish-on') === 'merge' ? 'merge' : 'review';
  console.log(`load before: ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores\n`);
  for (const name of hosts) {
    const host = await start(name, publishOn);
    if (typeof host === 'string') {
      console.log(`${name}: not measured: ${host}\n`);
      continue;
    }
    const latencies = Number(wordIn(options, 'latencies') ?? LATENCIES);
    const wanted = { sizes, latencies, publishOn, withDetails: options.includes('--details') };
    const measured = await measure(host, wanted);
    console.log(`${name}, publishOn: ${publishOn}\n`);
    print(measured);
    for (const problem of new Set(host.problems())) console.log(`not as the host describes its API: ${problem}`);
    console.log('');
  }
  const idle = Number(wordIn(options, 'idle') ?? IDLE_PULLS);
  if (idle > 0) await printIdle(idle);
  console.log(`load after: ${loadavg()[0]?.toFixed(1)}`);
}

async function start(name: string, publishOn: PublishOn): Promise<BenchHost | string> {
  if (name === 'github') return GitHubHost.start(publishOn === 'merge');
  const program = await giteaProgram();
  return 'missing' in program ? program.missing : GiteaHost.start(program);
}

function wordIn(options: readonly string[], name: string): string | undefined {
  return options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
}

interface Wanted {
  readonly sizes: readonly number[];
  readonly latencies: number;
  readonly publishOn: PublishOn;
  readonly withDetails: boolean;
}

async function measure(host: BenchHost, { sizes, latencies, publishOn, withDetails }: Wanted): Promise<Measured[]> {
  const data = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const port = await freePort();
  const words = ['--allow-git-host', '127.0.0.1', '--webhook-listen', `127.0.0.1:${port}`];
  const up = await RunningUp.start(data, { words });
  try {
    await configure(up.api, host.access, publishOn);
    const all: Measured[] = [];
    for (const count of sizes) {
      const name = `packages-${count}`;
      const address = await host.createRepository(name, `http://127.0.0.1:${port}/webhooks/git/default/${name}`);
      await register(up.api, name, address);
      const measured = await measureSize(host, up, name, { count, publishOn, reviewed: Math.min(latencies, count) });
      all.push(measured);
      const [opened, published] = [measured.openedMs, measured.publishedMs].map((one) => (one / 1000).toFixed(0));
      console.log(`${count} proposals: opened after ${opened} s, published ${published} s after the reviews\n`);
      if (!withDetails) continue;
      console.log(`${count} proposals: requests until opened`);
      printRequests(measured.opening, count);
      console.log(`\n${count} proposals: requests from the approving reviews until all are published`);
      printRequests(measured.publishing, count);
      console.log(`\nlatencies: ${measured.latencies.map((one) => one.toFixed(0)).join(' ')}\n`);
    }
    return all;
  } finally {
    await up.end();
    await host.close();
    await rm(data, { recursive: true, force: true });
  }
}

async function measureSize(
  host: BenchHost,
  { api, child }: RunningUp,
  repository: string,
  { count, publishOn, reviewed }: { readonly count: number; readonly publishOn: PublishOn; readonly reviewed: number },
): Promise<Measured> {
  const names = await createDrafts(api, repository, count, CONCURRENCY);
  const before = (await host.requests()).length;
  const cpuBefore = processLoad(child.pid ?? 0).cpu;
  const ownBefore = ownCpu();
  const proposing = performance.now();
  await forEachConcurrently(names, CONCURRENCY, (name) => propose(api, name));
  await until('all have pull requests', async () => (await host.openPulls()) === count);
  await until('all have the label', async () => (await host.labelled()) === count);
  const openedMs = performance.now() - proposing;
  await settle(host);
  const opening = (await host.requests()).slice(before);

  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const latencies: number[] = [];
  for (const number of numbers.slice(0, reviewed)) latencies.push(await latencyOf(host, number));
  await settle(host);

  const beforeReviews = (await host.requests()).length;
  const reviewing = performance.now();
  await forEachConcurrently(numbers, CONCURRENCY, async (number) => void (await host.review(number, 'approve')));
  if (publishOn === 'merge') {
    const isReady = async (number: number) => (await host.stateOf(number)) === 'success';
    for (const number of numbers) await until(`${number} is ready`, () => isReady(number), STATE_STEP_MS);
    await forEachConcurrently(numbers, CONCURRENCY, (number) => host.merge(number));
  }
  await until('all are published', async () => (await host.openPulls()) === 0);
  await until('Sluice shows all as published', async () => (await countPublished(api, repository)) === count);
  const publishedMs = performance.now() - reviewing;
  await settle(host);
  const publishing = (await host.requests()).slice(beforeReviews);
  const cpu = processLoad(child.pid ?? 0).cpu - cpuBefore;
  return { count, opening, publishing, openedMs, publishedMs, latencies, cpu, ownCpu: ownCpu() - ownBefore };
}

/** Seconds. */
function ownCpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}

/** Milliseconds from the webhook of a review until the check of its proposal is updated. */
async function latencyOf(host: BenchHost, number: number): Promise<number> {
  const sent = await host.review(number, 'request-changes');
  await until(`${number} has its check`, async () => (await host.stateOf(number)) === 'failure', STATE_STEP_MS);
  return performance.now() - sent;
}

/** Waits until Sluice has requested nothing for three seconds. */
async function settle(host: BenchHost): Promise<void> {
  for (let last = -1; ; ) {
    const now = (await host.requests()).length;
    if (now === last) return;
    last = now;
    await delay(QUIET_MS);
  }
}

async function printIdle(open: number): Promise<void> {
  const { withWebhooks, withoutWebhooks } = await idleHours(open);
  const row = (what: string, { all, free }: IdleHour, aim: string) => [what, `${all}`, `${all - free}`, aim];
  printTable(
    [`requests in an idle hour, ${open} open`, 'in all', 'without 304', 'aim'],
    [row('with webhooks', withWebhooks, '<= 200'), row('without webhooks', withoutWebhooks, '')],
  );
  console.log('');
}

function print(measured: readonly Measured[]): void {
  const perProposal = (pick: (one: Measured) => readonly ApiRequest[], isCounted: (one: ApiRequest) => boolean) =>
    measured.map((one) => (pick(one).filter(isCounted).length / one.count).toFixed(1));
  const all = ({ opening, publishing }: Measured) => [...opening, ...publishing];
  const seconds = (pick: (one: Measured) => number) => measured.map((one) => `${(pick(one) / 1000).toFixed(1)} s`);
  const cpuOf = (pick: (one: Measured) => number) =>
    measured.map((one) => milliseconds((pick(one) / one.count) * 1000));
  const latency = (part: number) => measured.map(({ latencies }) => milliseconds(percentile(latencies, part)));
  printTable(
    ['proposals at once', ...measured.map(({ count }) => `${count}`), 'aim'],
    [
      ['until all have pull request and label', ...seconds(({ openedMs }) => openedMs), ''],
      ['from the reviews until all are published', ...seconds(({ publishedMs }) => publishedMs), ''],
      [
        'requests per proposal until opened',
        ...perProposal(
          ({ opening }) => opening,
          () => true,
        ),
        '',
      ],
      ['requests per proposal, opened and published', ...perProposal(all, () => true), '<= 8'],
      ['of which the host counts (not 304)', ...perProposal(all, ({ isFree }) => !isFree), ''],
      ['CPU of Sluice per proposal', ...cpuOf(({ cpu }) => cpu), ''],
      ['CPU of the benchmark per proposal', ...cpuOf((one) => one.ownCpu), ''],
      ['webhook until updated check, median', ...latency(0.5), ''],
      ['webhook until updated check, p95', ...latency(0.95), '<= 1000 ms'],
    ],
  );
}
