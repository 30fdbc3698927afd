import { expect, test } from 'vitest';
import { type HostComment, setTopicComment, type TopicComments } from './topic-comment.ts';

/** The comments of a pull request. `pass` is awaited before each effect, so that calls of two processes meet. */
function open(pass: () => Promise<void> = async () => undefined) {
  let list: readonly HostComment[] = [];
  const calls: string[] = [];
  let last = 0;
  const effect = async <Result>(name: string, work: () => Result): Promise<Result> => {
    await pass();
    calls.push(name);
    return work();
  };
  const comments: TopicComments = {
    read: async () => list,
    create: (body) =>
      effect('create', () => {
        last += 1;
        const times = { createdAt: '2030-01-01T00:00:00Z', updatedAt: '2030-01-01T00:00:00Z' };
        const made = { id: `${last}`, author: 'sluice', body, url: '', isOwn: true, ...times };
        list = [...list, made];
        return made;
      }),
    change: (id, body) =>
      effect('change', () => {
        list = list.map((one) => (one.id === id ? { ...one, body } : one));
        return { ...(list.find((one) => one.id === id) as HostComment) };
      }),
    remove: (id) =>
      effect('remove', () => {
        list = list.filter((one) => one.id !== id);
      }),
  };
  return { comments, calls, bodies: () => list.map(({ body }) => body.split('\n').at(-1)) };
}

test('two processes that create a comment about a topic at the same time leave one', async () => {
  let waiting = 0;
  const both = Promise.withResolvers<void>();
  // Both have read before one of them creates.
  const { comments, bodies } = open(async () => {
    waiting += 1;
    if (waiting === 2) both.resolve();
    await both.promise;
  });
  const [one, other] = await Promise.all(['text', 'text'].map((text) => setTopicComment(comments, 'merged', text)));
  expect(bodies()).toEqual(['text']);
  expect([one?.id, other?.id]).toEqual(['1', '1']);
});

test('a comment is created once, left alone while it is the same, and changed in place', async () => {
  const { comments, calls, bodies } = open();
  for (const text of ['text', 'text', 'other']) await setTopicComment(comments, 'merged', text);
  expect(bodies()).toEqual(['other']);
  expect(calls).toEqual(['create', 'change']);
});
