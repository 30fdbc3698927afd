import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { DELIMITER, FLUSH, type Packet, PktLineParser, pktLine, textOf } from './pkt-line.ts';
import { ProtocolError } from './protocol-error.ts';

const text = (packet: Packet) => (typeof packet === 'string' ? packet : packet.toString('utf8'));

test('lines round-trip for every split of the stream', () => {
  const packet = fc.oneof(fc.constantFrom('flush' as const, 'delimiter' as const), fc.uint8Array({ maxLength: 300 }));
  fc.assert(
    fc.property(fc.array(packet, { maxLength: 30 }), fc.array(fc.integer({ min: 1, max: 50 })), (packets, cuts) => {
      const wire = Buffer.concat(
        packets.map((one) => (one === 'flush' ? FLUSH : one === 'delimiter' ? DELIMITER : pktLine(one))),
      );
      const parser = new PktLineParser();
      const seen: Packet[] = [];
      for (let at = 0, step = 0; at < wire.length; step++) {
        const size = cuts[step % Math.max(1, cuts.length)] ?? wire.length;
        seen.push(...parser.push(wire.subarray(at, at + size)));
        at += size;
      }
      parser.end();
      expect(seen.map((one) => (typeof one === 'string' ? one : one.toString('hex')))).toEqual(
        packets.map((one) => (typeof one === 'string' ? one : Buffer.from(one).toString('hex'))),
      );
    }),
    { numRuns: runs(100) },
  );
});

test('the line feed at the end of a line is not part of its text', () => {
  const [first, second, third] = new PktLineParser().push(Buffer.from('000bunpack\n0006ok0000'));
  expect([textOf(first as Buffer), textOf(second as Buffer), text(third as Packet)]).toEqual(['unpack', 'ok', 'flush']);
});

test('what is no packet is refused, and nothing is read without end', () => {
  for (const wire of ['<html>', '0003', 'fffff', '00g0', '+123'])
    expect(() => new PktLineParser().push(Buffer.from(wire)), wire).toThrow(ProtocolError);
  const parser = new PktLineParser();
  expect(parser.push(Buffer.from('0010half'))).toEqual([]);
  expect(() => parser.end()).toThrow('cut off');
  expect(() => pktLine('x'.repeat(65_517))).toThrow(ProtocolError);
});
