import { expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { MemoryForge } from '../testing-forge.ts';
import { isDeletedOnHost } from './deleted-pulls.ts';

const { signal } = new AbortController();

test('a branch of which no pull request is known has none that could end', async () => {
  const forge = new MemoryForge();
  const of = (number: number | undefined) => ({
    ...{ forge, base: 'main', note: () => true },
    ofBranch: async () =>
      number === undefined ? undefined : forge.open({ head: 'one', base: 'main', title: '', body: '' }),
  });
  expect(await isDeletedOnHost(of(undefined), { branch: 'one' }, signal)).toBe(true);
  expect(await isDeletedOnHost(of(1), { branch: 'one' }, signal)).toBe(false);
});

test('what the host does not answer shows no deletion, and a rate limit keeps its pause', async () => {
  const forge = new MemoryForge();
  const pulls = { forge, base: 'main', note: () => true, ofBranch: async () => undefined };
  const isDeleted = () => isDeletedOnHost(pulls, { branch: 'one', number: 1 }, signal);
  expect(await isDeleted()).toBe(true);
  for (const wanted of ['get', 'listUpdated', 'find']) {
    forge.before = (method) => {
      if (method === wanted) throw new SluiceError('Unavailable', 'later');
    };
    expect(await isDeleted(), wanted).toBe(false);
  }
  forge.before = () => {
    throw new SluiceError('TooManyRequests', 'later');
  };
  await expect(isDeleted()).rejects.toMatchObject({ code: 'TooManyRequests' });
});
