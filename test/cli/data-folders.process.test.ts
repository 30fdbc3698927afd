import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  DATA_FOLDERS,
  describeDataFolder,
  environmentOf,
  formatsOf,
  readFixture,
  restoreDataFolder,
  writeDataFolder,
} from '../../scripts/data-folder.ts';
import { runCli } from '../../src/cli/testing.ts';

const names = readdirSync(DATA_FOLDERS, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

let data: string;
beforeEach(async () => {
  data = join(await mkdtemp(join(tmpdir(), 'sluice-formats-')), 'data');
});
afterEach(() => rm(join(data, '..'), { recursive: true }));

async function run(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(words, environmentOf(data));
  expect([code, stderr], words.join(' ')).toEqual([0, expect.any(String)]);
  return stdout;
}

test.each(names)('this version opens the data folder %s, finds all as it was, and goes on working', async (name) => {
  const fixture = join(DATA_FOLDERS, name);
  await restoreDataFolder(fixture, data);
  // Later versions may report more.
  expect(await describeDataFolder(data)).toMatchObject(readFixture(fixture, 'description.json') as object);
  expect(await run('repo', 'get', '-o', 'name')).toBe('repository.config.porch.kpt.dev/apps\n');
  // The verdict was issued before, and counts because the ledger knows the key that signed it.
  await run('rpkg', 'approve', 'apps.db.v1', '--as', 'bob');
  expect(await run('rpkg', 'get', 'apps.db.v1')).toMatch(/Published/);
  await run('rpkg', 'init', 'next', '--repository', 'apps', '--workspace', 'v1');
  expect(await run('verify', join(data, 'repositories/apps.git'))).toMatch(/^\d+ in band, 0 out of band;/);
});

test('a data folder in the format that this version writes is checked in', async () => {
  await writeDataFolder(data);
  const known = names.map((name) => readFixture(join(DATA_FOLDERS, name), 'formats.json'));
  expect(known, 'a format changed: run "npm run data-folder -- <name>", and keep the earlier folders').toContainEqual(
    await formatsOf(data),
  );
});
