import { draft } from '../api-rows.ts';
import { ratio } from '../table.ts';
import { label } from './cluster-reads.ts';
import { compare, MERGE_PATCH, type Target, type Targets, timed } from './cluster-rows.ts';
import { plainObject } from './plain-kind.ts';

const LIFECYCLES = { rounds: 20, warmUp: 3 };
const WRITERS = 16;
/** Milliseconds for which writes are counted. */
const RATE_MS = 5000;
const MAX_ATTEMPTS = 20;

export const RATE_HEAD = ['per second', 'aggregated', 'embedded', 'plain CRD', 'ratio to embedded', 'ratio to CRD'];

/** Create, propose and approve, one package after the other. */
export async function lifecycleRows(targets: Targets): Promise<string[][]> {
  const isPlain = (target: Target) => target === targets.plain;
  const number = (round: number) => `lifecycle-${round + LIFECYCLES.warmUp}`;
  const create = (target: Target, round: number) => timed(() => createDraft(target, number(round), isPlain(target)));
  const move = (lifecycle: string, subresource: string) => (target: Target, round: number) =>
    timed(() => moveTo(target, number(round), lifecycle, isPlain(target) ? '' : subresource));
  return [
    await compare('create a draft', targets, create, LIFECYCLES),
    await compare('propose', targets, move('Proposed', ''), LIFECYCLES),
    await compare('approve', targets, move('Published', '/approval'), LIFECYCLES),
  ];
}

/** Writes per second of many clients at once, through the aggregator and to the embedded server. */
export async function rateRows(targets: Targets): Promise<string[][]> {
  const rows: string[][] = [];
  for (const [job, write] of [
    ['drafts created', (target: Target, at: number) => createDraft(target, `rate-${at}`, target === targets.plain)],
    // Each client changes a draft of its own, which was created before.
    ['labels changed', (target: Target, at: number) => label(target, `rate-${at % WRITERS}`)],
  ] as const) {
    const rates: number[] = [];
    for (const name of ['aggregated', 'embedded', 'plain'] as const)
      rates.push(await rate((at) => repeated(() => write(targets[name], at))));
    const [ours = 0, embedded = 0, plain = 0] = rates;
    const figures = rates.map((value) => value.toFixed(0));
    rows.push([`${job}, ${WRITERS} clients`, ...figures, ratio(embedded, ours), ratio(plain, ours)]);
  }
  return rows;
}

async function rate(write: (at: number) => Promise<unknown>): Promise<number> {
  let done = 0;
  const started = performance.now();
  const end = started + RATE_MS;
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let at = writer; performance.now() < end; at += WRITERS) {
        await write(at);
        done += 1;
      }
    }),
  );
  return (1000 * done) / (performance.now() - started);
}

function createDraft({ client, path }: Target, name: string, isPlain: boolean): Promise<Buffer> {
  if (!isPlain) return client.send('POST', path, draft(name));
  const { spec } = draft(name) as { readonly spec: object };
  return client.send('POST', path, plainObject({ metadata: { name: `bench.${name}.w1` }, spec }));
}

async function moveTo({ client, path }: Target, name: string, lifecycle: string, subresource: string): Promise<void> {
  const patch = { spec: { lifecycle } };
  await repeated(() => client.send('PATCH', `${path}/bench.${name}.w1${subresource}`, patch, MERGE_PATCH));
}

/** Repeats a call after a conflict, since controllers write to a new draft too. */
async function repeated(call: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1)
    try {
      await call();
      return;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !String(error).includes('returned 409')) throw error;
    }
}
