import { join } from 'node:path';
import { CONFIG_MAPS, configMap, type Pair } from './api-rows.ts';
import { rawInserts } from './sqlite-floor.ts';
import { ratio } from './table.ts';

export const OBJECTS = 30_000;
const WRITERS = 100;

/** 30,000 ConfigMaps by many writers at once, then some by a single one; compared with rows written to SQLite directly. */
export async function writeRows({ sluice, floor }: Pair, folder: string): Promise<string[][]> {
  const create =
    ({ client }: Pair['sluice'], name: string) =>
    (number: number) =>
      client.send('POST', CONFIG_MAPS, configMap(`${name}-${number}`));
  const created = await rate(WRITERS, OBJECTS, create(sluice, 'bench'));
  const answered = await rate(WRITERS, OBJECTS, create(floor, 'bench'));
  const alone = await rate(1, 500, create(sluice, 'alone'));
  const texts = Array.from({ length: OBJECTS }, (_, number) => JSON.stringify(configMap(`bench-${number}`)));
  const path = join(folder, 'floor.db');
  const many = `ConfigMaps a second, ${WRITERS} writers`;
  return [
    row(`${many}, beside raw inserts, ${WRITERS} a transaction`, created, rawInserts(path, texts, WRITERS)),
    row(`${many}, beside POST`, created, answered),
    row(
      'ConfigMaps a second, one writer, beside raw inserts, one a transaction',
      alone,
      rawInserts(path, texts.slice(0, 500), 1),
    ),
  ];
}

/** Rates; the ratio is that of the times. */
function row(job: string, ours: number, floor: number): string[] {
  return [job, ours.toFixed(0), '', floor.toFixed(0), '', ratio(floor, ours), '', ''];
}

/** Calls a second, with `parallel` at a time. */
async function rate(writers: number, count: number, write: (number: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      while (next < count) await write(next++);
    }),
  );
  return (1000 * count) / (performance.now() - started);
}
