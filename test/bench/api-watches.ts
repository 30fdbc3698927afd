import {
  type Aim,
  CONFIG_MAPS,
  configMap,
  draft,
  kilobytes,
  type Latencies,
  latencyRow,
  type Pair,
  REVISIONS,
  within,
} from './api-rows.ts';
import { ratio } from './table.ts';

const WATCHERS = 1000;
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };

/** Time until watchers receive an event. */
export async function watchRows(pair: Pair): Promise<string[][]> {
  const { client } = pair.sluice;
  let number = 0;
  const create = () => client.send('POST', CONFIG_MAPS, configMap(`watched-${number++}`));
  const createDraft = () => client.send('POST', REVISIONS, draft(`watched-${number++}`));
  const label = () =>
    client.send('PATCH', `${REVISIONS}/bench.watched.w1`, { metadata: { labels: { n: `${number++}` } } }, MERGE_PATCH);
  await client.send('POST', REVISIONS, draft('watched'));
  const one = { watchers: 1, rounds: 50 };
  const many = { watchers: WATCHERS, rounds: 30, aim: within(50) };
  const job = `until ${WATCHERS} watchers know of`;
  const map = await watchRow(pair, 'until a watcher knows of a new ConfigMap', CONFIG_MAPS, create, one);
  const revision = await watchRow(pair, 'until a watcher knows of a new draft', REVISIONS, createDraft, one);
  const maps = await watchRow(pair, `${job} a new ConfigMap`, CONFIG_MAPS, create, many);
  const revisions = await watchRow(pair, `${job} a draft's new label`, REVISIONS, label, many);
  return [map, revision, maps, revisions];
}

/** Memory of a watch, measured on servers with little history: freed memory would hide it. */
export async function memoryRow({ sluice, floor }: Pair): Promise<string[]> {
  const cost = async ({ client, memory }: Pair['sluice'], path: string) => {
    const before = await memory();
    const watches = await client.watch(path, WATCHERS);
    await watches.quiet(1000);
    const after = await memory();
    watches.close();
    return (after - before) / WATCHERS;
  };
  const [ours, best] = [await cost(sluice, await watchPath(sluice, REVISIONS)), await cost(floor, '/watch')];
  return ['memory a watch', kilobytes(ours), '', kilobytes(best), '', ratio(ours, best), '', ''];
}

/** A watch that starts at the current version. */
async function watchPath({ client }: Pair['sluice'], path: string): Promise<string> {
  const { metadata } = JSON.parse((await client.send('GET', `${path}?limit=1`)).toString());
  return `${path}?watch=true&resourceVersion=${metadata.resourceVersion}`;
}

interface WatchJob {
  readonly watchers: number;
  readonly rounds: number;
  readonly aim?: Aim;
}

/** One event after the other to all watchers, from the request that causes it; the floor writes the same line to as many. */
async function watchRow(
  { sluice, floor }: Pair,
  job: string,
  path: string,
  cause: () => Promise<unknown>,
  { watchers, rounds, aim }: WatchJob,
): Promise<string[]> {
  const watches = await sluice.client.watch(await watchPath(sluice, path), watchers);
  const floorWatches = await floor.client.watch('/watch', watchers);
  try {
    for (let round = 0; round < 5; round++) await watches.latency(cause);
    await floor.client.send('PUT', '/line', watches.line);
    const times: Latencies = { ours: [], floor: [] };
    for (let round = 0; round < rounds; round++) {
      times.ours.push(await watches.latency(cause));
      times.floor.push(await floorWatches.latency(() => floor.client.send('POST', '/', configMap('any'))));
    }
    return latencyRow(job, times, aim);
  } finally {
    watches.close();
    floorWatches.close();
  }
}
