import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import {
  MAX_STATEMENT_VALUES,
  payloadOf,
  SIGNATURE_TRAILER,
  STATEMENT_VERSION,
  statementDigest,
} from '../../trust/statement/statement.ts';
import { asWritten, fakeSigned, fakeSigner } from '../../trust/testing/fake-signatures.ts';
import {
  emptyRecord,
  formatRecord,
  hasObjectMetadata,
  type LifecycleStep,
  oneLine,
  parseRecord,
  type RecordStatement,
  type RevisionRecord,
  verdictOf,
  withContributor,
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
  contributors: [{ name: 'ann', face: 'api', since: '2026-01-01T00:00:00Z', commit: 'c' }],
  approvals: [
    { subject: 'bob', content: 'd', tree: 't', at: '2026-01-01T00:00:00Z', face: 'api', evidence: 'https://x' },
  ],
  proposal: { gates: ['x/v1.Y.z'] },
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

function statementOf(record: RevisionRecord, overrides: object = {}): RecordStatement {
  return {
    ...{ statement: STATEMENT_VERSION, kind: 'record', repository: 'id', package: 'net/upf', workspace: 'v1' },
    ...{ sequence: 3, previous: 'd2', record },
    ...overrides,
  };
}

function signed(record: RevisionRecord, overrides?: object) {
  return fakeSigned(statementOf(record, overrides), 'own');
}

/** As versions before statements wrote it. */
function unsigned(record: unknown): string {
  return `s\n\n${JSON.stringify(record)}\n`;
}

describe('formatRecord and parseRecord', () => {
  test('give back every field, and what the signature is valid for', () => {
    const statement = signed(full);
    const read = parseRecord(formatRecord('propose r.p.v1', asWritten(statement)));
    expect(read).toEqual({ record: full, signed: statement, digest: statementDigest(payloadOf(statement.statement)) });
    expect(fakeSigner(payloadOf(read.signed?.statement ?? statementOf(full)), read.signed?.signature ?? '')).toBe(
      'own',
    );
    expect(parseRecord(formatRecord('new', asWritten(signed(emptyRecord('c'))))).record).toEqual({
      version: 1,
      commit: 'c',
      verdicts: [],
      steps: [],
    });
  });

  test('frame the payload as one line of canonical JSON and the signature as a trailer', () => {
    const statement = signed(emptyRecord('c'));
    expect(formatRecord('new', asWritten(statement)).split('\n')).toEqual([
      'new',
      '',
      '{"kind":"record","package":"net/upf","previous":"d2","record":{"commit":"c","steps":[],"verdicts":[],"version":1},' +
        '"repository":"id","sequence":3,"statement":"sluice.dev/v1","workspace":"v1"}',
      '',
      `${SIGNATURE_TRAILER}: ${statement.signature}`,
      '',
    ]);
  });

  test('what a later version added stays, and stays covered by the signature', () => {
    const later = { ...full, later: { z: 1, a: [2] } };
    const statement = signed(later, { more: 'x' });
    const read = parseRecord(formatRecord('s', asWritten(statement)));
    expect(read.record).toEqual(full);
    expect(read.signed).toEqual(statement);
    const forged = parseRecord(formatRecord('s', asWritten(statement)).replace('"more":"x"', '"more":"y"'));
    const { statement: changed, signature } = forged.signed ?? statement;
    expect(fakeSigner(payloadOf(changed), signature)).toBeUndefined();
  });

  test('the order of keys, spaces and names given twice do not change what is signed', () => {
    const statement = signed(emptyRecord('c'));
    const { record, ...head } = statement.statement;
    const payload = `{"sequence":9,${JSON.stringify({ record, ...head }, null, 1)
      .slice(1)
      .replaceAll('\n', ' ')}`;
    const read = parseRecord(`s\n\n${payload}\n\n${SIGNATURE_TRAILER}: ${statement.signature}\n`);
    expect(read.signed).toEqual(statement);
  });

  test('a record of an earlier version is a claim, independent of its trailers', () => {
    expect(parseRecord(unsigned(full))).toEqual({ record: full, signed: undefined });
    const { signature } = signed(full);
    expect(parseRecord(`${unsigned(full)}\n${SIGNATURE_TRAILER}: ${signature}\n`)).toEqual({
      record: full,
      signed: undefined,
    });
  });

  test.each([
    ['no signature', (text: string) => text.slice(0, text.indexOf(`\n\n${SIGNATURE_TRAILER}`)), ''],
    ['an empty signature', (text: string) => text.replace(/(Signature:).*/, '$1 '), ''],
    ['spaces around it', (text: string) => text.replace(/(Signature:) (.*)/, '$1   $2  '), undefined],
  ])('a statement with %s is still one, and says what it says', (_, change, signature) => {
    const statement = signed(full);
    const read = parseRecord(change(formatRecord('s', asWritten(statement))));
    expect(read.signed).toEqual({ ...statement, signature: signature ?? statement.signature });
  });

  test('the subject cannot reach into the record', () => {
    const subject = 'x\n\n{"version":1,"commit":"forged","verdicts":[],"steps":[]}\n\n';
    const statement = signed(full);
    expect(parseRecord(formatRecord(subject, asWritten(statement)))).toMatchObject({ record: full, signed: statement });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseRecord(formatRecord(text, asWritten(statement)))).toMatchObject({
          record: full,
          signed: statement,
        });
      }),
      { numRuns: runs(100) },
    );
  });

  test.each([
    ['nothing', ''],
    ['a subject only', 'x{"version":1,"commit":"c","verdicts":[],"steps":[]}'],
    ['no JSON', 's\n\nhello'],
    ['half of it', formatRecord('s', asWritten(signed(full))).slice(0, 300)],
    ['a statement of another version', formatRecord('s', asWritten(signed(full, { statement: 'sluice.dev/v2' })))],
    ['a statement of another kind', formatRecord('s', asWritten(signed(full, { kind: 'publication' })))],
    ['a statement without a record', formatRecord('s', asWritten(signed(full, { record: null })))],
    ['a statement about no repository', formatRecord('s', asWritten(signed(full, { repository: undefined })))],
    ['the sequence 0', formatRecord('s', asWritten(signed(full, { sequence: 0 })))],
    ['a sequence that is no whole number', formatRecord('s', asWritten(signed(full, { sequence: 1.5 })))],
    ['a sequence beyond what can be counted', formatRecord('s', asWritten(signed(full, { sequence: 2 ** 53 })))],
    ['nothing known to come before', formatRecord('s', asWritten(signed(full, { previous: undefined })))],
    ['a statement nested beyond what can be signed', deep('x', 1000)],
    ['a record nested beyond what can be signed', deep('ownerReferences', 1000)],
    ['another version', 's\n\n{"version":2,"commit":"c","verdicts":[],"steps":[]}'],
    ['null', 's\n\nnull'],
    ['a list', 's\n\n[]'],
    ['a status that is none', formatRecord('s', asWritten(signed(full))).replace('"False"', '"false"')],
    ['a verdict without inputs', 's\n\n{"version":1,"commit":"c","verdicts":[{"type":"x"}],"steps":[]}'],
    [
      'more verdicts without fields than could be reported',
      `s\n\n{"version":1,"verdicts":[${'{},'.repeat(300_000)}{}]}`,
    ],
    ['as many as are read', `s\n\n{"version":1,"verdicts":[${'{},'.repeat(MAX_STATEMENT_VALUES / 2)}{}]}`],
    ['a deep list', `s\n\n${'['.repeat(200_000)}`],
  ])('says Corrupt about %s', (_, message) => {
    expect(() => parseRecord(message)).toThrow(expect.objectContaining({ code: 'Corrupt' }));
  });

  test('fields of a later version and __proto__ are left out', () => {
    const read = parseRecord(
      's\n\n{"version":1,"commit":"c","verdicts":[],"steps":[],"more":1,"__proto__":{"x":1},"labels":{"__proto__":"y","a":"b"}}',
    );
    const expected = { version: 1, commit: 'c', verdicts: [], steps: [], labels: { a: 'b' } };
    expect(read).toEqual({ record: expected, signed: undefined });
    expect('x' in read.record).toBe(false);
  });
});

/** A record with a field whose value is nested deeply; nothing could sign it. */
function deep(field: string, depth: number): string {
  const value = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const name = field === 'ownerReferences' ? `"ownerReferences":[${value}]` : `"${field}":${value}`;
  const text = formatRecord('s', asWritten(signed(emptyRecord('c'))));
  return field === 'ownerReferences'
    ? text.replace('"commit":"c"', `"commit":"c",${name}`)
    : text.replace('"kind":"record"', `"kind":"record",${name}`);
}

describe('withContributor', () => {
  const since = '2026-01-01T00:00:00Z';

  test('names people and pushes once, with the first commit', () => {
    const ann = withContributor([], { actor: { name: 'ann' }, face: 'api' }, since, 'c1');
    expect(ann).toEqual([{ name: 'ann', face: 'api', since, commit: 'c1' }]);
    expect(withContributor(ann, { actor: { name: 'ann' }, face: 'git' }, 'later', 'c2')).toEqual(ann);
    expect(withContributor(ann, { actor: { name: 'push' }, face: 'git' }, since, 'c2').map(({ name }) => name)).toEqual(
      ['ann', 'push'],
    );
  });

  test('a controller processes content of other authors', () => {
    expect(withContributor([], { actor: { name: 'ipam' }, face: 'controller' }, since, 'c1')).toEqual([]);
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

test('hasObjectMetadata tests for data that a publication does not contain', () => {
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
