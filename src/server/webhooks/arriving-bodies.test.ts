import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ArrivingBodies } from './arriving-bodies.ts';

const KIB = 1024;
const request = () => new IncomingMessage(new Socket());

test('a body that would exceed the memory of all disconnects the oldest senders, and no other', () => {
  const bodies = new ArrivingBodies(100 * KIB);
  const requests = Array.from({ length: 10 }, request);
  const arriving = requests.map((one) => bodies.begin(one, 64 * KIB));
  expect(requests.map(({ destroyed }) => destroyed)).toEqual([true, true, true, true, ...Array(6).fill(false)]);
  const genuine = arriving.at(-1);
  genuine?.append(Buffer.alloc(32 * KIB, 'x'));
  expect(requests.map(({ destroyed }) => destroyed).lastIndexOf(true)).toBe(5);
  // A sender that was disconnected holds nothing more.
  arriving[0]?.append(Buffer.alloc(64 * KIB));
  expect(arriving[0]?.end()).toBeUndefined();
  expect(genuine?.end()).toEqual(Buffer.alloc(32 * KIB, 'x'));
  for (const body of [...arriving, ...arriving]) body.end();
  expect(bodies.bytes).toBe(0);
});

test('a single body can be the one that is discarded', () => {
  const bodies = new ArrivingBodies(40 * KIB);
  const large = request();
  const body = bodies.begin(large, 64 * KIB);
  body.append(Buffer.alloc(30 * KIB));
  expect([large.destroyed, bodies.bytes, body.end()]).toEqual([true, 0, undefined]);
});

test('a body costs what it holds, however small its parts are, and nothing once it is too long', () => {
  const bodies = new ArrivingBodies(1024 * KIB);
  const body = bodies.begin(request(), 64 * KIB);
  const before = bodies.bytes;
  for (let byte = 0; byte < 40 * KIB; byte += 1) body.append(Buffer.of(byte & 0xff));
  expect(bodies.bytes - before).toBe(64 * KIB);
  body.append(Buffer.alloc(30 * KIB));
  expect(bodies.bytes).toBe(before);
  expect(body.end()).toBeUndefined();
});
