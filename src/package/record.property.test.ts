import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import {
  emptyRecord,
  formatRecord,
  hasObjectMetadata,
  type LifecycleStep,
  oneLine,
  parseRecord,
  type RevisionRecord,
  verdictOf,
  withStep,
} from './record.ts';

const full: RevisionRecord = {
  version: 1,
  commit: 'a'.repeat(40),
  verdicts: [
    {
      type: 'x/v1.Y.z',
      status: 'False',
      reason: 'Waiting',
      message: 'a\n\nb "c" \u2028',
      inputs: { content: 'c', 'object:x/v1.Y.z': 'o' },
      by: 'ann',
      groups: ['g'],
      face: 'api',
      at: '2026-01-01T00:00:00Z',
      since: '2026-01-01T00:00:00Z',
    },
  ],
  steps: [{ action: 'propose', by: 'ann', face: 'api', at: '2026-01-01T00:00:00Z', commit: 'c', reason: 'r' }],
  source: { kind: 'copy', name: 'r.p.v1', commit: 'c', content: 'd' },
  settled: { content: 'c', resolvers: ['ipam'], at: '2026-01-01T00:00:00Z' },
  budget: { since: '2026-01-01T00:00:00Z', commits: 3 },
  labels: { a: 'b' },
  annotations: { constructor: 'x' },
  ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u', controller: true }],
  finalizers: ['f'],
  deletionTimestamp: '2026-01-01T00:00:00Z',
  createdAt: '2026-01-01T00:00:00Z',
};

describe('formatRecord and parseRecord', () => {
  test('give back every field', () => {
    expect(parseRecord(formatRecord('propose r.p.v1', full))).toEqual(full);
    expect(parseRecord(formatRecord('new', emptyRecord('c')))).toEqual({
      version: 1,
      commit: 'c',
      verdicts: [],
      steps: [],
    });
  });

  test('the subject cannot reach into the record', () => {
    const subject = 'x\n\n{"version":1,"commit":"forged","verdicts":[],"steps":[]}\n\n';
    expect(parseRecord(formatRecord(subject, full))).toEqual(full);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseRecord(formatRecord(text, full))).toEqual(full);
      }),
      { numRuns: runs(100) },
    );
  });

  test.each([
    ['nothing', ''],
    ['a subject only', 'x{"version":1,"commit":"c","verdicts":[],"steps":[]}'],
    ['no JSON', 's\n\nhello'],
    ['half of it', formatRecord('s', full).slice(0, -20)],
    ['another version', 's\n\n{"version":2,"commit":"c","verdicts":[],"steps":[]}'],
    ['null', 's\n\nnull'],
    ['a list', 's\n\n[]'],
    ['a status that is none', formatRecord('s', full).replace('"False"', '"false"')],
    ['a verdict without inputs', 's\n\n{"version":1,"commit":"c","verdicts":[{"type":"x"}],"steps":[]}'],
    ['a deep list', `s\n\n${'['.repeat(200_000)}`],
  ])('says Corrupt about %s', (_, message) => {
    expect(() => parseRecord(message)).toThrow(expect.objectContaining({ code: 'Corrupt' }));
  });

  test('fields of a later version and __proto__ are left out', () => {
    const read = parseRecord(
      's\n\n{"version":1,"commit":"c","verdicts":[],"steps":[],"more":1,"__proto__":{"x":1},"labels":{"__proto__":"y","a":"b"}}',
    );
    expect(read).toEqual({ version: 1, commit: 'c', verdicts: [], steps: [], labels: { a: 'b' } });
    expect('x' in read).toBe(false);
  });
});

describe('withStep', () => {
  test('keeps the last 50, oldest first', () => {
    let record = emptyRecord('c');
    const step = (n: number): LifecycleStep => ({
      action: `a${n}`,
      by: 'ann',
      face: 'cli',
      at: '2026-01-01T00:00:00Z',
    });
    for (let n = 0; n < 53; n += 1) record = withStep(record, step(n));
    expect(record.steps).toHaveLength(50);
    expect(record.steps[0]?.action).toBe('a3');
    expect(record.steps.at(-1)?.action).toBe('a52');
  });
});

test('verdictOf finds by the exact type', () => {
  expect(verdictOf(full, 'x/v1.Y.z')?.by).toBe('ann');
  expect(verdictOf(full, 'x/v1.Y')).toBeUndefined();
  expect(verdictOf(full, '__proto__')).toBeUndefined();
  expect(verdictOf(undefined, 'x')).toBeUndefined();
});

test('hasObjectMetadata asks for what publication does not fold', () => {
  expect(hasObjectMetadata(full)).toBe(true);
  expect(hasObjectMetadata(emptyRecord('c'))).toBe(false);
  expect(
    hasObjectMetadata({ ...emptyRecord('c'), labels: {}, annotations: {}, finalizers: [], ownerReferences: [] }),
  ).toBe(false);
  expect(hasObjectMetadata({ ...emptyRecord('c'), finalizers: ['f'] })).toBe(true);
  expect(hasObjectMetadata({ ...emptyRecord('c'), ownerReferences: [{}] })).toBe(true);
});

test('oneLine leaves no character that ends a line or starts a terminal sequence', () => {
  expect(oneLine('  a\r\n\tb\u0000\u001b[31mc\u0085d\u009be\u2028f\u2029 ')).toBe('a b [31mc d e f');
  expect(oneLine('Grüße, 日本')).toBe('Grüße, 日本');
});
