import { appendFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nextFileTime } from '../../../test/support/git/file-clock.ts';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { ObservedFiles } from './observed-files.ts';

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let time: number;
let met: ObservedFiles;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, 'file');
  writeFileSync(file, 'x');
  time = 1000;
  met = new ObservedFiles(() => time);
});
afterEach(() => folder.remove());

test('the age of a file is the time since this process first observed it, independent of its timestamps', async () => {
  utimesSync(file, new Date(0), new Date(0));
  expect(await met.age(file)).toBe(0);
  time += 500;
  expect(await met.age(file)).toBe(500);
  met.forget(file);
  expect(await met.age(file)).toBe(0);
});

test.each<[string, () => void]>([
  ['written to', () => appendFileSync(file, 'y')],
  ['touched', () => utimesSync(file, new Date(0), new Date(0))],
  [
    'replaced',
    () => {
      writeFileSync(`${file}.new`, 'x');
      renameSync(`${file}.new`, file);
    },
  ],
])('one that was %s counts as new', async (_what, change) => {
  await met.age(file);
  time += 500;
  await nextFileTime();
  change();
  expect(await met.age(file)).toBe(0);
});

test('an absent file has no age, and is new when it is created again', async () => {
  await met.age(file);
  rmSync(file);
  expect(await met.age(file)).toBeUndefined();
  time += 500;
  writeFileSync(file, 'x');
  expect(await met.age(file)).toBe(0);
});
