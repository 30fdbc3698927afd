import { expect, test } from 'vitest';
import { OpenRequests } from './open-requests.ts';

test('requests and bytes are counted for each user and for all, until the request is closed', () => {
  const open = new OpenRequests({ maxRequestsOfUser: 2, maxBytes: 100, maxBytesOfUser: 60 });
  const [first, second] = [open.open('a'), open.open('a')];
  expect(() => open.open('a')).toThrow(/^too many requests, please try again later: the user has 2 open requests$/);
  first.reserve(40);
  first.reserve(20);
  expect(() => second.reserve(1)).toThrow('of the user have 60 bytes');
  const other = open.open('b');
  other.reserve(40);
  expect(() => other.reserve(1)).toThrow('of all users have 100 bytes');
  expect(open.bytes).toBe(100);
  first.close();
  second.reserve(60);
  expect(open.bytes).toBe(100);
  for (const request of [second, other]) request.close();
  expect(open.bytes).toBe(0);
  open.open('a').reserve(60);
});

test('a response counts to its user until it is sent, but the only one is never refused', () => {
  const open = new OpenRequests({ maxRequestsOfUser: 2, maxBytes: 100, maxBytesOfUser: 60 });
  const first = open.open('a');
  const sent = first.reserveResponse(70, { mayRefuse: true });
  first.close();
  const second = open.open('a');
  expect(() => second.reserve(1)).toThrow('of the user have 60 bytes');
  expect(() => second.reserveResponse(1, { mayRefuse: true })).toThrow('being sent to the user have 60 bytes');
  const written = second.reserveResponse(1, { mayRefuse: false });
  open.open('b').reserveResponse(60, { mayRefuse: true });
  expect(open.bytes).toBe(0);
  for (const release of [sent, written]) release();
  second.reserve(60);
});
