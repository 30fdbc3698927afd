import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Gitea, startGitea } from '../../forge/support/gitea.ts';
import { giteaProgram } from '../../forge/support/gitea-program.ts';
import { RunningUp } from '../../support/api/running-up.ts';
import { freePort } from '../../support/free-port.ts';
import { median, milliseconds, percentile, printTable, ratio } from '../table.ts';
import { ApiRequests, printRequests } from './api-requests.ts';
import { giteaFloor } from './gitea-floor.ts';
import {
  createDrafts,
  labelled,
  numberOf,
  openNumbers,
  openPulls,
  propose,
  register,
  review,
  stateOf,
} from './gitea-place.ts';
import { forEachConcurrently, until } from './waiting.ts';

/** Requests that the clients of the benchmark have under way at the same time. */
const CONCURRENCY = 8;
const LATENCIES = 20;
/** Sluice polls less after five minutes without a change. */
const UNTIL_QUIET_MS = 330_000;

/**
 * Proposals as pull requests on a real Gitea on loopback: all proposed at once, then reviewed by a second user; a review until its check is
 * updated through a webhook; and the requests while nothing happens. `--proposals=200` and `--idle=120` (seconds, 0 for none) choose the sizes.
 * The floor is the same requests (open, status) by a client that does nothing else, to another repository of the same Gitea.
 */
export async function forge(options: readonly string[] = []): Promise<void> {
  const count = numberIn(options, 'proposals', 200);
  const idle = numberIn(options, 'idle', 120);
  const program = await giteaProgram();
  if ('missing' in program) {
    console.log(`not measured: ${program.missing}`);
    return;
  }
  console.log(`load before: ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`);
  const server = await startGitea(program);
  const data = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const gitea = new Gitea(server);
  const requests = new ApiRequests(server.folder);
  const webhooks = await freePort();
  const words = ['--allow-git-host', '127.0.0.1', '--webhook-listen', `127.0.0.1:${webhooks}`];
  const up = await RunningUp.start(data, { words });
  try {
    await register(gitea, up.api, webhooks);
    const names = await createDrafts(up.api, count, CONCURRENCY);
    console.log(`${count} drafts`);
    const before = await requests.count();
    const start = performance.now();
    await forEachConcurrently(names, CONCURRENCY, (name) => propose(up.api, name));
    const proposed = performance.now() - start;
    await until('all have pull requests', async () => (await openPulls(gitea)) === count);
    await until('all have the label', async () => (await labelled(gitea)) === count);
    const opened = performance.now() - start;
    await requests.settle();
    const opening = (await requests.read()).slice(before);
    console.log(`opened: ${opening.length} requests`);
    const floor = await giteaFloor(gitea, count, CONCURRENCY);

    const idleRequests = idle === 0 ? undefined : await idleFor(requests, idle);
    const latencies = await reviewLatencies(gitea, names.slice(0, Math.min(LATENCIES, count)));
    await requests.settle();
    console.log(`latencies: ${latencies.map((one) => one.toFixed(0)).join(' ')}`);

    const beforeReviews = await requests.count();
    const reviewing = performance.now();
    await forEachConcurrently(await openNumbers(gitea), CONCURRENCY, (number) => review(gitea, number, 'APPROVED'));
    await until('all are published', async () => (await openPulls(gitea)) === 0);
    const published = performance.now() - reviewing;
    await requests.settle();
    const publishing = (await requests.read()).slice(beforeReviews);

    const perProposal = (opening.length + publishing.length) / count;
    console.log('');
    printTable(
      ['what', 'measured', 'aim'],
      [
        [`${count} proposals at once until proposed`, milliseconds(proposed), ''],
        [`until all have pull request and label`, milliseconds(opened), ''],
        ['ratio to the same requests alone', ratio(opened, floor), ''],
        [`${count} reviews until all are published`, milliseconds(published), ''],
        ['requests per proposal until opened', (opening.length / count).toFixed(1), ''],
        ['requests per proposal, opened and published', perProposal.toFixed(1), '<= 8'],
        [
          `requests in an idle hour with ${count} open`,
          idleRequests === undefined ? 'not measured' : (idleRequests * (3600 / idle)).toFixed(0),
          '<= 200',
        ],
        ['review until its check is updated, median', milliseconds(median(latencies)), ''],
        ['review until its check is updated, p95', milliseconds(percentile(latencies, 0.95)), '<= 1000 ms'],
      ],
    );
    console.log(`\nrequests until opened`);
    printRequests(opening, count);
    console.log(`\nrequests from the reviews until published`);
    printRequests(publishing, count);
    console.log(`\nload after: ${loadavg()[0]?.toFixed(1)}`);
  } finally {
    await up.end();
    await server.close();
    await rm(data, { recursive: true, force: true });
  }
}

function numberIn(options: readonly string[], name: string, fallback: number): number {
  const given = options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  return given === undefined ? fallback : Number(given);
}

/** Requests within some seconds, once Sluice polls as in quiet times. */
async function idleFor(requests: ApiRequests, seconds: number): Promise<number> {
  console.log('waiting for quiet times (5 minutes without a change)');
  await delay(UNTIL_QUIET_MS);
  const before = await requests.count();
  await delay(seconds * 1000);
  return (await requests.count()) - before;
}

/** Milliseconds from each of some reviews until the check of its proposal is updated, one after the other. */
async function reviewLatencies(gitea: Gitea, names: readonly string[]): Promise<number[]> {
  const latencies: number[] = [];
  for (const name of names) {
    const number = await numberOf(gitea, name);
    const start = performance.now();
    await review(gitea, number, 'REQUEST_CHANGES');
    await until(`${name} has its check`, async () => (await stateOf(gitea, number)) === 'failure', 20);
    latencies.push(performance.now() - start);
  }
  return latencies;
}
