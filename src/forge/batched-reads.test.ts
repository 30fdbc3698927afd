import { expect, test } from 'vitest';
import { BatchedReads } from './batched-reads.ts';

const NO_SIGNAL = new AbortController().signal;

function start(size: number) {
  const requests: { keys: readonly number[]; respond: (results: ReadonlyMap<number, string | Error>) => void }[] = [];
  const reads = new BatchedReads<number, string>(size, (keys) => {
    const { promise, resolve } = Promise.withResolvers<ReadonlyMap<number, string | Error>>();
    requests.push({ keys, respond: resolve });
    return promise;
  });
  const read = (key: number, signal = NO_SIGNAL) => reads.read(key, signal);
  return { requests, read };
}

test('reads at the same time share requests, and a read during a request is in a later one', async () => {
  const { requests, read } = start(2);
  const all = [1, 2, 1, 3].map((key) => read(key));
  await expect.poll(() => requests.map(({ keys }) => keys)).toEqual([[1, 2], [3]]);
  const later = read(1);
  await expect.poll(() => requests.length).toBe(3);
  for (const { keys, respond } of requests) respond(new Map(keys.map((key) => [key, `${key} of ${keys}`])));
  expect(await Promise.all(all)).toEqual(['1 of 1,2', '2 of 1,2', '1 of 1,2', '3 of 3']);
  expect(await later).toBe('1 of 1');
});

test('more than three requests wait for the first ones, and share the next', async () => {
  const { requests, read } = start(1);
  const all = [1, 2, 3, 4, 5].map((key) => read(key));
  await expect.poll(() => requests.length).toBe(3);
  requests[0]?.respond(new Map([[1, 'a']]));
  await expect.poll(() => requests.length).toBe(4);
  for (const at of [1, 2, 3]) requests[at]?.respond(new Map([[at + 1, 'b']]));
  await expect.poll(() => requests.length).toBe(5);
  requests[4]?.respond(new Map([[5, 'c']]));
  expect(await Promise.all(all)).toEqual(['a', 'b', 'b', 'b', 'c']);
});

test('a failure is that of its key, or of the whole request; a caller that ends does not end the others', async () => {
  const { requests, read } = start(5);
  const end = new AbortController();
  const ended = read(1, end.signal);
  const [one, two] = [read(1), read(2)];
  const failed = expect(two).rejects.toThrow('not found');
  end.abort(new Error('the caller ends'));
  await expect(ended).rejects.toThrow('the caller ends');
  await expect.poll(() => requests.length).toBe(1);
  requests[0]?.respond(
    new Map<number, string | Error>([
      [1, 'a'],
      [2, new Error('not found')],
    ]),
  );
  expect(await one).toBe('a');
  await failed;
});
