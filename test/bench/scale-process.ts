// Opens the index of one repository in a process of its own, works with it, and prints what that took as one line of JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { readKptfile } from '../../kptfile-schema/index.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { PackageRevisionStorage } from '../../src/package/api/storages/package-revision-storage.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import { LATEST_REVISION_LABEL } from '../../src/resource/kinds/porch/package-revision.ts';
import { fieldSelector } from '../../src/resource/selector/field-selector.ts';
import { labelSelector } from '../../src/resource/selector/label-selector.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import { kptfileTexts } from './lifecycle.ts';
import { openBench } from './open-bench.ts';
import { context } from './publish-one-by-one.ts';
import { median } from './table.ts';

/** Milliseconds, if not said otherwise. */
export interface Opened {
  readonly revisions: number;
  readonly open: number;
  /** The longest block of the event loop meanwhile and, where it applies, until clients could list it. */
  readonly held: number;
  /** Resident memory after it, in MB. */
  readonly memory: number;
  /** The time to parse all Kptfiles once more. */
  readonly parse?: number;
}

export interface Used extends Opened {
  /** The time from the opened repository to the objects that clients list. */
  readonly table: number;
  readonly listOne: number;
  readonly listLatest: number;
  readonly watch: number;
  readonly write: number;
  readonly read: number;
}

const ROUNDS = 30;

const [job = '', path = '', cacheFile = ''] = process.argv.slice(2);
const store = new RevisionStore();
const log = new EventLog({ clock: systemClock });
const storage = new PackageRevisionStorage(store, log);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const started = performance.now();
const repository = await openBench(path, cacheFile, undefined, (changes) => store.announce(changes));
const open = performance.now() - started;
const memory = process.memoryUsage.rss() / 2 ** 20;
const adding = performance.now();
if (job === 'use') await store.add(repository);
const table = performance.now() - adding;
// The monitor reports a turn only in the next one.
await setTimeout(5);
delay.disable();
const opened: Opened = {
  ...{ revisions: [...repository.index.all()].length, open, held: delay.max / 1e6 },
  memory,
};
console.log(JSON.stringify({ ...opened, ...(job === 'use' ? await use(repository) : { parse: await parseAll() }) }));
await repository.close();

async function parseAll(): Promise<number> {
  const texts = await kptfileTexts(repository);
  const parsing = performance.now();
  for (const text of texts) readKptfile(text);
  return performance.now() - parsing;
}

async function use(of: PackageRepository): Promise<Omit<Used, keyof Opened>> {
  const rows = [...of.index.all()];
  const some = Array.from({ length: ROUNDS }, (_, round) => rows[Math.floor((round * rows.length) / ROUNDS)]).flatMap(
    (row) => row ?? [],
  );
  const { listOne, listLatest } = await lists(some);
  const reads = await times(some, (row) => store.content(row.name));
  return { table, listOne, listLatest, ...(await watch()), read: median(reads) };
}

async function lists(some: readonly { readonly key: { package: string } }[]) {
  const one = await times(some, ({ key }) =>
    storage.list(context, { fieldSelector: fieldSelector(`spec.packageName=${key.package}`) }),
  );
  const latest = { labelSelector: labelSelector(`${LATEST_REVISION_LABEL}=true`), limit: 500 };
  return { listOne: median(one), listLatest: median(await times(some, () => storage.list(context, latest))) };
}

/** New labels of drafts, one after the other: until the write has returned, and until a watcher of one repository receives it. */
async function watch(): Promise<{ watch: number; write: number }> {
  const abort = new AbortController();
  const events = storage.watch(context, {
    resourceVersion: log.version,
    signal: abort.signal,
    fieldSelector: fieldSelector('spec.repository=bench'),
  });
  const drafts = store.list({ lifecycle: 'Draft' }).slice(0, ROUNDS);
  const iterator = events[Symbol.asyncIterator]();
  const writes: number[] = [];
  const watched = await times(drafts, async ({ name }, round) => {
    const hasReported = iterator.next();
    const begun = performance.now();
    await store.change(name, { metadata: { labels: { round: `${process.pid}-${round}` } } }, context);
    writes.push(performance.now() - begun);
    await hasReported;
  });
  abort.abort();
  return { watch: median(watched), write: median(writes) };
}

async function times<Item>(items: readonly Item[], action: (item: Item, round: number) => Promise<unknown>) {
  const taken: number[] = [];
  for (const [round, item] of items.entries()) {
    const begun = performance.now();
    await action(item, round);
    taken.push(performance.now() - begun);
  }
  return taken;
}
