import { gunzipSync } from 'node:zlib';
import {
  type Aim,
  CONFIG_MAPS,
  kilobytes,
  type Latencies,
  latencyRow,
  type Pair,
  REVISIONS,
  TWICE,
  within,
} from './api-rows.ts';
import { packageName } from './synthetic-repository.ts';

const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const GZIP = { 'accept-encoding': 'gzip' };

/** Gets and lists by one client on one connection. */
export async function readRows(pair: Pair): Promise<string[][]> {
  const page = `${REVISIONS}?limit=500`;
  const name = `bench.${packageName(4711).replaceAll('/', '.')}.w2`;
  const label = encodeURIComponent('kpt.dev/latest-revision=true');
  const field = `spec.packageName%3D${encodeURIComponent(packageName(4711))}`;
  const get = { rounds: 2000, warmUp: 500, aim: TWICE };
  const large = { rounds: 12, warmUp: 3 };
  const some = { rounds: 200, warmUp: 40 };
  return [
    await readRow(pair, 'get a package revision', `${REVISIONS}/${name}`, get),
    await readRow(pair, 'get a ConfigMap', `${CONFIG_MAPS}/bench-4711`, get),
    await readRow(pair, 'first page of 500 package revisions', page, { ...some, aim: within(15) }),
    await readRow(pair, '... compressed', page, { ...some, aim: within(15), headers: GZIP }),
    await readRow(pair, '... as a table', page, { ...some, aim: within(15), headers: TABLE }),
    await readRow(pair, 'first page of 500 ConfigMaps', `${CONFIG_MAPS}?limit=500`, { ...some, aim: within(15) }),
    await readRow(pair, 'all 30,000 package revisions', REVISIONS, large),
    await readRow(pair, '10,000 of them by label', `${REVISIONS}?labelSelector=${label}`, large),
    await readRow(pair, '10,000 of them by field', `${REVISIONS}?fieldSelector=spec.revision%3D2`, large),
    await readRow(pair, '3 of them by field', `${REVISIONS}?fieldSelector=${field}`, { rounds: 1000, warmUp: 200 }),
  ];
}

interface ReadOptions {
  readonly rounds: number;
  readonly warmUp: number;
  readonly aim?: Aim;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One client reads on one connection, alternating between Sluice and the floor, so that both run under the same load. */
async function readRow({ sluice, floor }: Pair, job: string, path: string, options: ReadOptions): Promise<string[]> {
  const { rounds, warmUp, aim, headers } = options;
  const read = () => sluice.client.send('GET', path, undefined, headers);
  const constant = await read();
  await floor.client.send('PUT', path, constant);
  const times: Latencies = { ours: [], floor: [] };
  for (let round = -warmUp; round < rounds; round++) {
    const started = performance.now();
    await read();
    const between = performance.now();
    await floor.client.send('GET', path, undefined, headers);
    const ended = performance.now();
    if (round < 0) continue;
    times.ours.push(between - started);
    times.floor.push(ended - between);
  }
  const size =
    headers === GZIP
      ? `${kilobytes(constant.length)} of ${kilobytes(gunzipSync(constant).length)}`
      : kilobytes(constant.length);
  return latencyRow(`${job}, ${size}`, times, aim);
}
