import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { decodeKubernetesProtobuf } from './decode-kubernetes-protobuf.ts';

const BODIES = readFileSync(new URL('../../../test/go/fixtures/protobuf-bodies.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => Buffer.from((JSON.parse(line) as { protobuf: string }).protobuf, 'base64'));

/** A length or a number on the wire. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return Buffer.from([...bytes, rest]);
}

function field(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content as string);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function body(apiVersion: string, kind: string, raw: Uint8Array, ...more: Buffer[]): Buffer {
  const type = Buffer.concat([field(1, apiVersion), field(2, kind)]);
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, raw), ...more]);
}

const configMap = (...fields: Buffer[]): Buffer => body('v1', 'ConfigMap', Buffer.concat(fields));

/** Reads it or refuses it with an error for the client; anything else is thrown. */
function attempt(bytes: Uint8Array): 'read' | 'refused' {
  try {
    JSON.stringify(decodeKubernetesProtobuf(bytes));
    return 'read';
  } catch (error) {
    if (isSluiceError(error, 'BadRequest') || isSluiceError(error, 'UnsupportedMediaType')) return 'refused';
    throw error;
  }
}

describe('every input is either read or refused', () => {
  test('any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => attempt(bytes) === 'refused'),
      { numRuns: runs(100) },
    );
  });

  test('any content in a good envelope', () => {
    const kinds = fc.constantFrom('ConfigMap', 'Event', 'Secret', 'ServiceAccount', 'Namespace');
    fc.assert(
      fc.property(kinds, fc.uint8Array({ maxLength: 300 }), (kind, raw) => {
        attempt(body('v1', kind, raw));
      }),
      { numRuns: runs(2000) },
    );
  });

  test('good bodies with a few bytes changed', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...BODIES), changes, (good, edits) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of edits) bytes[at % bytes.length] = value;
        attempt(bytes);
      }),
      { numRuns: runs(5000) },
    );
  });

  test('good bodies cut off, except at the end of a field of the envelope', () => {
    // The stacks of 50,000 errors, which no assertion reads, take seconds.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    onTestFinished(() => {
      Error.stackTraceLimit = stackTraceLimit;
    });
    for (const good of BODIES) {
      const ends = Array.from({ length: good.length }, (_, length) => length).filter(
        (length) => attempt(good.subarray(0, length)) === 'read',
      );
      // The envelope writes its content, and two empty texts after it.
      expect(ends).toEqual([good.length - 4, good.length - 2]);
    }
  });
});

describe('single flaws', () => {
  const typeOnly = Buffer.concat([Buffer.from('k8s\0'), field(1, Buffer.concat([field(1, 'v1'), field(2, 'Secret')]))]);
  const refusals: readonly [string, Buffer, RegExp][] = [
    ['no magic', Buffer.from('{"kind":"ConfigMap"}'), /does not start with "k8s"/],
    ['nothing', Buffer.alloc(0), /does not start with "k8s"/],
    ['no content', typeOnly, /envelope is empty/],
    ['a number of eleven bytes', configMap(Buffer.from([0x20, ...Array(10).fill(0xff), 1])), /invalid varint/],
    ['a number without an end', configMap(Buffer.from([0x20, 0x80])), /premature EOF/],
    ['a length beyond the end', configMap(Buffer.from([0x0a, 5, 0])), /premature EOF/],
    ['a length of 64 bits', configMap(Buffer.from([0x0a, ...Array(9).fill(0xff), 1])), /premature EOF/],
    ['the field number 0', configMap(Buffer.from([0x02, 0])), /field no 0/],
    ['a number in an unknown field without an end', configMap(Buffer.from([0x98, 0x06, 0xff, 0xff])), /premature EOF/],
    ['an unknown field beyond the end', configMap(Buffer.from([0x9a, 0x06, 0x7f, 0])), /premature EOF/],
    ['a fixed number beyond the end', configMap(Buffer.from([0x99, 0x06, 1, 2, 3])), /premature EOF/],
    ['a tag of 64 bits', configMap(Buffer.from([...Array(9).fill(0xff), 1, 0])), /illegal tag/],
    ['nested groups', configMap(Buffer.alloc(100_000, 0x0b)), /wire type 3/],
    ['a group', configMap(Buffer.from([0x0b, 0x0c])), /wire type 3/],
    ['an unknown wire type', configMap(Buffer.from([0x0f])), /wire type 7/],
    ['a number in place of a message', configMap(Buffer.from([0x08, 1])), /metadata must be/],
    ['a text in place of a flag', configMap(field(4, 'yes')), /immutable must be a number/],
    ['a fixed number in place of a text', configMap(field(1, Buffer.from([0x0d, 1, 2, 3, 4]))), /name must be/],
    ['no UTF-8', configMap(field(1, field(1, Buffer.from([0xff])))), /UTF-8/],
    ['a key without UTF-8', configMap(field(2, field(1, Buffer.from([0xc0, 0x80])))), /UTF-8/],
    ['a year of five digits', configMap(field(1, field(8, Buffer.from([8, ...varint(300_000_000_000)])))), /a time is/],
    ['broken JSON', configMap(field(1, field(17, field(7, field(1, '{"a":'))))), /JSON/],
  ];
  test.each(refusals)('%s is a BadRequest', (_name, bytes, message) => {
    expect(() => decodeKubernetesProtobuf(bytes)).toThrow(
      expect.objectContaining({ code: 'BadRequest', message: expect.stringMatching(message) }),
    );
  });

  test.each([
    ['an unknown kind', body('apps/v1', 'Deployment', Buffer.alloc(0)), /"apps\/v1" "Deployment" are not read.*JSON/],
    ['a kind of another group', body('v2', 'Secret', Buffer.alloc(0)), /send JSON/],
    ['a name from a prototype', body('v1', '__proto__', Buffer.alloc(0)), /send JSON/],
    ['packed content', body('v1', 'Secret', Buffer.alloc(0), field(3, 'gzip')), /content encoding "gzip"/],
    ['JSON content', body('v1', 'Secret', Buffer.from('{}'), field(4, 'application/json')), /send JSON/],
  ])('%s is an unsupported media type', (_name, bytes, message) => {
    expect(() => decodeKubernetesProtobuf(bytes)).toThrow(
      expect.objectContaining({ code: 'UnsupportedMediaType', message: expect.stringMatching(message) }),
    );
  });

  test('a million empty items are too many', () => {
    const items = Buffer.alloc(2_000_000);
    for (let at = 0; at < items.length; at += 2) items[at] = 0x12;
    expect(() => decodeKubernetesProtobuf(body('v1', 'ServiceAccount', items))).toThrow('more than 24000 values');
    expect(() => decodeKubernetesProtobuf(body('v1', 'ConfigMap', items))).toThrow('more than 24000 values');
  });

  test('errors hold no value of a Secret', () => {
    const secret = body(
      'v1',
      'Secret',
      field(4, Buffer.concat([field(1, 'password'), field(2, Buffer.from('hunter2\xff', 'latin1'))])),
    );
    expect(() => decodeKubernetesProtobuf(secret)).toThrow(/^(?!.*hunter2)/);
  });
});

describe('what is unusual and allowed', () => {
  test('unknown fields are skipped, however deep they are', () => {
    let deep: Buffer = Buffer.alloc(0);
    for (let level = 0; level < 500; level += 1) deep = field(99, deep);
    const unknown = [deep, Buffer.from([0x98, 0x06, 1]), Buffer.from([0x99, 0x06, ...Array(8).fill(7)])];
    const fixed32 = Buffer.from([0x9d, 0x06, ...Array(4).fill(7)]);
    expect(decodeKubernetesProtobuf(configMap(...unknown, fixed32, field(1, field(1, 'a'))))).toStrictEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
    });
  });

  test('the last of a field counts, and of a key', () => {
    const entry = (key: string, value: string) => field(2, Buffer.concat([field(1, key), field(2, value)]));
    const names = field(1, Buffer.concat([field(1, 'a'), field(1, 'b'), field(3, 'x'), field(3, '')]));
    expect(decodeKubernetesProtobuf(configMap(names, entry('k', '1'), entry('k', '2')))).toMatchObject({
      metadata: { name: 'b' },
      data: { k: '2' },
    });
    expect(decodeKubernetesProtobuf(configMap(names)).metadata).toStrictEqual({ name: 'b' });
  });

  test('a byte order mark is part of a text', () => {
    expect(decodeKubernetesProtobuf(configMap(field(1, field(1, '\ufeffa')))).metadata).toStrictEqual({
      name: '\ufeffa',
    });
  });

  test('keys of prototypes are data', () => {
    const entry = field(2, Buffer.concat([field(1, '__proto__'), field(2, 'x')]));
    const data = decodeKubernetesProtobuf(configMap(entry)).data as object;
    expect(Object.entries(data)).toEqual([['__proto__', 'x']]);
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  });
});
