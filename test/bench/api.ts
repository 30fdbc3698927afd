import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSluice, startFloor, startSluice } from './api-processes.ts';
import { readRows } from './api-reads.ts';
import { HEAD, plainRow } from './api-rows.ts';
import { memoryRow, watchRows } from './api-watches.ts';
import { writeRows } from './api-writes.ts';
import { synthesize } from './synthetic-repository.ts';
import { milliseconds, printTable } from './table.ts';

/** Three revisions each. */
const PACKAGES = 10_000;

/** The API of `sluice up` at 30,000 revisions and as many objects, against a plain HTTPS server with constant answers. */
export async function api(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const data = join(folder, 'data');
  const rows: string[][] = [];
  try {
    const repository = join(folder, 'bench.git');
    await synthesize({ path: repository, packages: PACKAGES, revisions: 3, drafts: 0 });
    await runSluice('repo', 'reg', repository, '--name', 'bench', '--data', data);
    const first = await startSluice(data);
    await first.stop();
    const sluice = await startSluice(data);
    rows.push(plainRow('start until it serves, first', milliseconds(first.startTime)));
    rows.push(plainRow('start until it serves, again', milliseconds(sluice.startTime)));
    rows.push(plainRow('resident memory, started', megabytes(await sluice.memory())));
    const floor = await startFloor(data);
    const pair = { sluice, floor };
    try {
      rows.push(await memoryRow(pair));
      rows.push(...(await writeRows(pair, folder)));
      rows.push(...(await readRows(pair)));
      rows.push(...(await watchRows(pair)));
      rows.push(plainRow('resident memory, at the end', megabytes(await sluice.memory())));
    } finally {
      await floor.stop();
      await sluice.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  printTable(HEAD, rows);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(0)} MB`;
}
