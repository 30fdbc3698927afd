import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RequestGroup } from './request-group.ts';

/** Which of the members have gone on, in order. */
function follow({ members }: RequestGroup, ...arriving: readonly number[]): number[] {
  const gone: number[] = [];
  for (const at of arriving) void members[at]?.arrive().then(() => gone.push(at));
  return gone;
}

test('requests of a group go on when each of them has arrived or ended', async () => {
  const group = new RequestGroup(3);
  const gone = follow(group, 0, 1);
  await setImmediate();
  expect(gone).toEqual([]);
  group.members[2]?.end();
  await setImmediate();
  expect(gone).toEqual([0, 1]);
  // What arrives again, or ends after it has arrived, counts once.
  expect(follow(group, 0)).toEqual([]);
  for (const member of group.members) member.end();
  await group.members[1]?.arrive();
});

test('all of a group go on in one turn, so that the first of them is followed by the others', async () => {
  const group = new RequestGroup(50);
  const queue: number[] = [];
  const seen: number[] = [];
  await Promise.all(
    group.members.map(async (member, at) => {
      await member.arrive();
      queue.push(at);
      // As a queue that begins with its first write.
      if (queue.length === 1) void Promise.resolve().then(() => seen.push(queue.length));
    }),
  );
  expect(seen).toEqual([50]);
});

test('a request that neither arrives nor ends does not hold the others for ever', async () => {
  const group = new RequestGroup(2, 1);
  await group.members[0]?.arrive();
});
