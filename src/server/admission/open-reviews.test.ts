import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { OpenReviews } from './open-reviews.ts';

const TOO_MANY = expect.objectContaining({ code: 'TooManyRequests' });
const request = () => new IncomingMessage(new Socket());

function certified(): IncomingMessage {
  const socket = new TLSSocket(new Socket());
  socket.authorized = true;
  return new IncomingMessage(socket);
}

test('callers with a certificate have a share of their own', () => {
  const reviews = new OpenReviews(new ManualClock(), { maxReviews: 2 });
  const first = reviews.open(request());
  reviews.open(request());
  expect(() => reviews.open(request())).toThrow(TOO_MANY);
  reviews.open(certified());
  reviews.open(certified());
  expect(() => reviews.open(certified())).toThrow(TOO_MANY);
  first.close();
  reviews.open(request());
  expect(() => reviews.open(request())).toThrow(TOO_MANY);
});

test('a slow sender makes room for others, and no review that is being decided does', () => {
  const clock = new ManualClock();
  const reviews = new OpenReviews(clock, { maxReviews: 3, slowBodyMs: 1000 });
  const [decided, slow, slower] = [request(), request(), request()];
  reviews.open(decided).decide(1);
  const dropped = reviews.open(slow);
  reviews.open(slower);
  expect(() => reviews.open(request())).toThrow(TOO_MANY);
  clock.advance(1000);
  const late = request();
  reviews.open(late);
  expect([decided, slow, slower, late].map(({ destroyed }) => destroyed)).toEqual([false, true, false, false]);
  // It frees its place once only.
  dropped.close();
  reviews.open(request());
  expect(slower.destroyed).toBe(true);
  expect(() => reviews.open(request())).toThrow(TOO_MANY);
});

test('the bodies that are being decided are limited together, and one alone is not', () => {
  const reviews = new OpenReviews(new ManualClock(), { maxCharacters: 100 });
  const large = reviews.open(request());
  large.decide(150);
  const small = reviews.open(request());
  expect(() => small.decide(1)).toThrow(TOO_MANY);
  large.close();
  small.decide(60);
  const other = reviews.open(request());
  other.decide(40);
  expect(() => reviews.open(request()).decide(1)).toThrow(TOO_MANY);
  reviews.open(certified()).decide(100);
});
