import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { changePrivateFile, readPrivateFile, writePrivateFile } from './private-file.ts';

const folder = await mkdtemp(join(tmpdir(), 'sluice-private-'));
afterAll(() => rm(folder, { recursive: true }));

test('a file gets mode 0600 also when it was there with a wider one', async () => {
  const path = join(folder, 'wide');
  await writeFile(path, 'old');
  await chmod(path, 0o644);
  await writePrivateFile(path, 'new');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readFile(path, 'utf8')).toBe('new');
});

test('what a killed writer left of a file is removed, what is of others is not', async () => {
  const path = join(folder, 'again');
  for (const name of ['again.1.tmp', 'again.txt', 'againx.tmp']) await writeFile(join(folder, name), 'half');
  await writePrivateFile(path, 'whole');
  expect((await readdir(folder)).filter((name) => name.startsWith('again')).sort()).toEqual([
    'again',
    'again.txt',
    'againx.tmp',
  ]);
});

test('changes that are made at the same time are all made', async () => {
  const path = join(folder, 'changed');
  await Promise.all(
    Array.from({ length: 8 }, (_, index) => changePrivateFile(path, 1000, (text = '') => `${text}${index}\n`)),
  );
  const lines = (await readFile(path, 'utf8')).trim().split('\n').sort();
  expect(lines).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
  expect((await readdir(folder)).filter((name) => name.startsWith('changed')).sort()).toEqual([
    'changed',
    'changed-lock',
  ]);
});

test('a change that throws leaves the file and no lock', async () => {
  const path = join(folder, 'kept');
  await writePrivateFile(path, 'kept');
  const failing = changePrivateFile(path, 1000, () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  await changePrivateFile(path, 1000, (text) => `${text} and changed`);
  expect(await readFile(path, 'utf8')).toBe('kept and changed');
});

test('what is too long, or no file, is not read; what is not there is undefined', async () => {
  const path = join(folder, 'long');
  await writeFile(path, 'x'.repeat(100));
  await expect(readPrivateFile(path, 99)).rejects.toMatchObject({ code: 'InvalidInput' });
  expect(await readPrivateFile(path, 100)).toHaveLength(100);
  await expect(readPrivateFile(folder, 99)).rejects.toMatchObject({ name: 'SluiceError' });
  expect(await readPrivateFile(join(folder, 'none'), 99)).toBeUndefined();
});
