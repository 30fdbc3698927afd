import { kilobytes } from '../api-rows.ts';
import { packageName } from '../synthetic-repository.ts';
import { compare, MERGE_PATCH, type Target, type Targets, timed } from './cluster-rows.ts';

const PACKAGE = packageName(71);
/** A published revision of the synthetic repository. */
const NAME = `bench.${PACKAGE.replaceAll('/', '.')}.w2`;
/** A draft, whose labels are changed. */
const WATCHED = 'watched';

/** Gets and lists by one client on one connection. */
export async function readRows(targets: Targets): Promise<string[][]> {
  const all = await read(targets.aggregated, '');
  const count = (JSON.parse(all.toString()) as { readonly items: readonly unknown[] }).items.length;
  const field = `?fieldSelector=spec.packageName%3D${encodeURIComponent(PACKAGE)}`;
  return [
    await readRow(targets, 'get', `/${NAME}`, { rounds: 300, warmUp: 50 }),
    await readRow(targets, 'list one package by field', field, { rounds: 100, warmUp: 20 }),
    await readRow(targets, 'list a page of 500', '?limit=500', { rounds: 20, warmUp: 5 }),
    await readRow(targets, `list all ${count}`, '', { rounds: 7, warmUp: 2 }),
  ];
}

async function readRow(
  targets: Targets,
  job: string,
  query: string,
  options: { readonly rounds: number; readonly warmUp: number },
): Promise<string[]> {
  const sizes = [targets.aggregated, targets.plain].map(async (target) =>
    kilobytes((await read(target, query)).length),
  );
  const [ours, plain] = await Promise.all(sizes);
  return compare(`${job}, ${ours} (CRD: ${plain})`, targets, (target) => timed(() => read(target, query)), options);
}

function read({ client, path }: Target, query: string): Promise<Buffer> {
  return client.send('GET', `${path}${query}`);
}

/** Time from sending a change of a label until a watch of all objects has the event. */
export async function watchRow(targets: Targets): Promise<string[]> {
  const watches = {
    aggregated: await watch(targets.aggregated),
    embedded: await watch(targets.embedded),
    plain: await watch(targets.plain),
  };
  const open = new Map(Object.entries(watches).map(([name, opened]) => [targets[name as keyof Targets], opened]));
  try {
    return await compare(
      'a label changed, until a watcher has the event',
      targets,
      (target) => {
        const opened = open.get(target);
        if (opened === undefined) throw new Error('this target is not watched');
        return opened.latency(() => label(target));
      },
      { rounds: 20, warmUp: 3 },
    );
  } finally {
    for (const opened of open.values()) opened.close();
  }
}

let labels = 0;

/** Gives the draft of a package a label that it did not have. */
export function label({ client, path }: Target, packageName = WATCHED): Promise<Buffer> {
  labels += 1;
  return client.send(
    'PATCH',
    `${path}/bench.${packageName}.w1`,
    { metadata: { labels: { n: `n${labels}` } } },
    MERGE_PATCH,
  );
}

async function watch({ client, path }: Target) {
  const { metadata } = JSON.parse((await client.send('GET', `${path}?limit=1`)).toString());
  return client.watch(`${path}?watch=true&resourceVersion=${metadata.resourceVersion}`, 1);
}
