import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CrashedDatabase } from './crash-database.ts';

/** The soak run has many more lives. */
const LIVES = 12;

test('killed while it writes, the database has every acknowledged write and new versions, and watches continue', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
  const database = new CrashedDatabase(folder);
  let acknowledged = 0;
  for (let life = 0; life < LIVES; life += 1) acknowledged += await database.live();
  expect(acknowledged).toBeGreaterThan(LIVES);
  await rm(folder, { recursive: true });
});
