import { expect, test } from 'vitest';
import { OpenRequests } from './open-requests.ts';

test('requests and bytes are counted for each user and for all, until the request is closed', () => {
  const open = new OpenRequests({ maxRequestsOfUser: 2, maxBytes: 100, maxBytesOfUser: 60 });
  const [first, second] = [open.open('a'), open.open('a')];
  expect(() => open.open('a')).toThrow(/^too many requests, please try again later: the user has 2 open requests$/);
  first.hold(40);
  first.hold(20);
  expect(() => second.hold(1)).toThrow('of the user have 60 bytes');
  const other = open.open('b');
  other.hold(40);
  expect(() => other.hold(1)).toThrow('of all users have 100 bytes');
  expect(open.bytes).toBe(100);
  first.close();
  second.hold(60);
  expect(open.bytes).toBe(100);
  for (const request of [second, other]) request.close();
  expect(open.bytes).toBe(0);
  open.open('a').hold(60);
});
