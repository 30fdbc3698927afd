import { expect, test } from 'vitest';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../../git/errors.ts';
import type { PackageContent } from './content.ts';
import { ContentCache } from './content-cache.ts';

const MEBIBYTE = 1024 * 1024;

function content(bytes: number, path = 'a'): PackageContent {
  const inputs = { content: '', object: () => undefined, file: () => undefined };
  return { ...inputs, tree: '', files: new Map([[path, Buffer.alloc(bytes)]]), skipped: [], objects: () => [] };
}

test('concurrent requests lead to one read, and a failed read is repeated', async () => {
  const cache = new ContentCache();
  let reads = 0;
  const read = async () => {
    reads += 1;
    if (reads === 1) throw new Error('broken');
    return content(1);
  };
  await expect(Promise.all([cache.get('a', read), cache.get('a', read)])).rejects.toThrow('broken');
  expect(reads).toBe(1);
  await Promise.all([cache.get('a', read), cache.get('a', read)]);
  expect(reads).toBe(2);
});

test('that content cannot be read is found out once, unless the repository is damaged', async () => {
  const cache = new ContentCache();
  const errors = [new SluiceError('LimitExceeded', 'too many files'), new DamageError('a file is missing')];
  for (const error of errors) {
    let reads = 0;
    const read = async () => {
      reads += 1;
      throw error;
    };
    for (let time = 0; time < 2; time++) await expect(cache.get(error.code, read)).rejects.toBe(error);
    expect(reads).toBe(error instanceof DamageError ? 2 : 1);
  }
});

test('number and bytes are bounded, and recently used entries stay', async () => {
  const cache = new ContentCache();
  for (let number = 0; number < 100; number++) {
    await cache.get(`${number}`, async () => content(MEBIBYTE));
    await cache.get('0', async () => expect.fail('read again'));
  }
  expect(cache.size.bytes).toBe(32 * MEBIBYTE);
  for (let number = 0; number < 1000; number++) await cache.get(`small ${number}`, async () => content(1));
  expect(cache.size).toEqual({ entries: 256, bytes: 256 });
});

test('YAML counts four times, as its objects are kept too', async () => {
  const cache = new ContentCache();
  for (let number = 0; number < 20; number++) await cache.get(`${number}`, async () => content(MEBIBYTE, 'a.yaml'));
  expect(cache.size).toEqual({ entries: 8, bytes: 32 * MEBIBYTE });
});
