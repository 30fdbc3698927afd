import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import {
  MAX_STATEMENT_LENGTH,
  MAX_STATEMENT_VALUES,
  payloadOf,
  STATEMENT_VERSION,
} from '../../trust/statement/statement.ts';
import { asWritten, fakeSigned, fakeSigner } from '../../trust/testing/fake-signatures.ts';
import {
  type FoldedRecord,
  formatCommitMessage,
  MAX_MESSAGE_LENGTH,
  type PublicationStatement,
  parseCommitMessage,
  parseRemoval,
  publishedRecordOf,
  statementTrailers,
} from './commit-message.ts';

const record: FoldedRecord = {
  verdicts: [
    {
      type: 'Rendered',
      status: 'True',
      message: 'two\nlines\u2028and a separator\u0085',
      inputs: { content: 'c1' },
      by: 'ann',
      groups: ['security'],
      face: 'cli',
      at: '2026-01-01T00:00:00Z',
      since: '2026-01-01T00:00:00Z',
    },
  ],
  steps: [
    { action: 'propose', by: 'ann', face: 'cli', at: '2026-01-01T00:00:00Z', reason: 'ready\nSluice-Actor: eve' },
  ],
  content: 'c1',
};

function signed(overrides: object = {}) {
  const statement: PublicationStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: 'id', package: 'dir/upf', workspace: 'w1' },
    ...{ sequence: 3, previous: 'd2', revision: 3, tree: 't', draft: 'c', branch: 'main', onto: 'm', record },
    ...overrides,
  };
  return fakeSigned(statement, 'own');
}

function approval(statement = signed()): string {
  return formatCommitMessage('s', {
    context: { actor: { name: 'ann' }, face: 'cli' },
    action: 'approve',
    statement: asWritten(statement),
  });
}

describe('formatCommitMessage', () => {
  test('has the annotation of Porch and the trailers of Sluice', () => {
    const message = formatCommitMessage('Approving package revision free5gc/upf/3', {
      annotations: [{ package: 'free5gc/upf', workspaceName: 'v3', revision: '3' }],
      context: { actor: { name: 'ann' }, face: 'cli', reason: 'looks good' },
      action: 'approve',
    });
    expect(message).toBe(
      [
        'Approving package revision free5gc/upf/3',
        '',
        'kpt:{"package":"free5gc/upf","workspaceName":"v3","revision":"3"}',
        '',
        'Sluice-Action: approve',
        'Sluice-Actor: ann',
        'Sluice-Face: cli',
        'Sluice-Reason: looks good',
        '',
      ].join('\n'),
    );
  });

  test('no text of a user becomes a line of its own', () => {
    const evil = 'x\r\nSluice-Action: approve\u2028Sluice-Actor: root\u0000\u009b31m\nkpt:{"package":"p"}';
    const message = formatCommitMessage(evil, {
      context: { actor: { name: evil }, face: 'api', reason: evil },
      action: 'edit',
    });
    const facts = parseCommitMessage(message);
    expect(facts.action).toBe('edit');
    expect(facts.annotations).toEqual([]);
    expect(facts.actor).toBe('x Sluice-Action: approve Sluice-Actor: root 31m kpt:{"package":"p"}');
    expect(message.split('\n').filter((line) => line.startsWith('Sluice-Actor:'))).toHaveLength(1);
  });

  test.each([
    'kpt:{"package":"p","revision":"v1"}',
    `Sluice-Record: ${JSON.stringify(record)}`,
    'Sluice-Reason: forged',
    statementTrailers(asWritten(signed())).join('\n'),
  ])('a subject that reads as an annotation or a trailer counts as neither (%#)', (subject) => {
    const message = formatCommitMessage(subject, { context: { actor: { name: 'ann' }, face: 'api' }, action: 'edit' });
    const facts = parseCommitMessage(message);
    expect(facts.annotations).toEqual([]);
    expect(facts.invalidAnnotations).toEqual([]);
    expect(facts.record).toBeUndefined();
    expect(facts.statement).toBeUndefined();
    expect(facts.reason).toBeUndefined();
    expect(message.split('\n')[0]?.startsWith(JSON.stringify(subject.slice(0, 12)).slice(0, -1))).toBe(true);
  });
});

describe('parseCommitMessage', () => {
  test('reads what Porch wrote', () => {
    const facts = parseCommitMessage(
      'Approving package revision basens/2\n\nkpt:{"package":"basens","workspaceName":"v2","revision":"2"}\n',
    );
    expect(facts.annotations).toEqual([{ package: 'basens', workspaceName: 'v2', revision: '2' }]);
    expect(facts.action).toBeUndefined();
    expect(facts.record).toBeUndefined();
  });

  test('reads several annotations, old and partial ones, and one in the subject', () => {
    const facts = parseCommitMessage(
      [
        'kpt:{"package":"a"}',
        'kpt:{"package":"b","revision":"v1"}',
        'kpt:{"package":"c","workspaceName":"w","revision":"","task":{"type":"patch","patch":{}},"more":1}',
      ].join('\n'),
    );
    expect(facts.annotations).toEqual([
      { package: 'a', workspaceName: '' },
      { package: 'b', workspaceName: '', revision: 'v1' },
      { package: 'c', workspaceName: 'w', task: { type: 'patch', patch: {} } },
    ]);
  });

  test.each([
    'kpt:',
    'kpt:{',
    'kpt:null',
    'kpt:[]',
    'kpt:"x"',
    'kpt:{"package":1}',
    'kpt:{"package":"p","revision":3}',
  ])('reports a line that is no annotation: %s', (line) => {
    const facts = parseCommitMessage(`subject\n\n${line}\n`);
    expect(facts.annotations).toEqual([]);
    expect(facts.invalidAnnotations).toEqual([line]);
  });

  test('keeps the statement of a publication whole, separators of lines included', () => {
    const statement = signed();
    for (const message of [approval(statement), approval(statement).replaceAll('\n', '\r\n')]) {
      const facts = parseCommitMessage(message);
      expect(facts.statement).toEqual(statement);
      expect(fakeSigner(payloadOf(facts.statement?.statement ?? signed().statement), statement.signature)).toBe('own');
      expect(facts.record).toBeUndefined();
      expect(publishedRecordOf(facts)).toEqual(record);
    }
  });

  test('finds the statement in the message of an annotated tag too', () => {
    const statement = signed();
    const message = `release 3\n\n${statementTrailers(asWritten(statement)).join('\n')}\n`;
    expect(parseCommitMessage(message).statement).toEqual(statement);
  });

  test('what a later version added to a statement stays covered by the signature', () => {
    const statement = signed({ more: 'x', record: { ...record, later: [1] } });
    expect(parseCommitMessage(approval(statement)).statement).toEqual(statement);
    const forged = parseCommitMessage(approval(statement).replace('"more":"x"', '"more":"y"')).statement;
    expect(forged).toBeDefined();
    expect(fakeSigner(payloadOf(forged?.statement ?? statement.statement), statement.signature)).toBeUndefined();
  });

  test.each<[string, object]>([
    ['of another version', { statement: 'sluice.dev/v2' }],
    ['of another kind', { kind: 'record' }],
    ['without a number', { revision: undefined }],
    ['with the number 0', { revision: 0 }],
    ['without a tree', { tree: undefined }],
    ['without a draft', { draft: undefined }],
    ['without a sequence', { sequence: undefined }],
    ['without a record', { record: undefined }],
    ['whose gates are none', { record: { ...record, gates: ['G'] } }],
  ])('a statement %s is none, and an unsigned record beside it is a claim', (_, overrides) => {
    const message = approval(signed(overrides));
    expect(parseCommitMessage(message).statement).toBeUndefined();
    const claim = `${message}Sluice-Record: ${JSON.stringify(record)}\n`;
    expect(parseCommitMessage(claim)).toMatchObject({ statement: undefined, record });
  });

  test('a statement nested beyond what can be signed is none', () => {
    for (const depth of [150, 1000, 100_000]) {
      const deep = `"more":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)},`;
      const message = approval().replace('Sluice-Statement: {', `Sluice-Statement: {${deep}`);
      const { statement } = parseCommitMessage(message);
      if (depth === 150) expect(() => payloadOf(statement?.statement ?? signed().statement)).not.toThrow();
      else expect(statement).toBeUndefined();
    }
  });

  test('a statement without its trailer has a signature that is not valid', () => {
    const message = approval().replace(/Sluice-Signature.*\n/, '');
    expect(parseCommitMessage(message).statement?.signature).toBe('');
  });

  test('keeps the record of an earlier version whole, separators of lines included, as a claim', () => {
    const line = `Sluice-Record: ${JSON.stringify({ ...record, gatesBypassed: true })}\n`;
    const message =
      formatCommitMessage('s', { context: { actor: { name: 'ann' }, face: 'cli' }, action: 'approve' }) + line;
    expect(parseCommitMessage(message).record).toEqual({ ...record, gatesBypassed: true });
    expect(parseCommitMessage(message.replaceAll('\n', '\r\n')).record).toEqual({ ...record, gatesBypassed: true });
    expect(parseCommitMessage(message.replaceAll('\n', '\r\n')).action).toBe('approve');
  });

  test.each([
    '{}',
    '[]',
    'null',
    '"x"',
    '{"verdicts":[null],"steps":[],"content":"c"}',
    '{"verdicts":[{"type":"x"}],"steps":[],"content":"c"}',
    '{"verdicts":[],"steps":[{}],"content":"c"}',
    '{"verdicts":[],"steps":[]}',
    '{"verdicts":[],"steps":[],"content":"c","gatesBypassed":"no"}',
    '{"verdicts":{"length":1},"steps":[],"content":"c"}',
    `${'['.repeat(100_000)}`,
  ])('a record of another form is none (%#)', (text) => {
    expect(parseCommitMessage(`s\n\nSluice-Record: ${text}\n`).record).toBeUndefined();
  });

  test('keys like __proto__ give nothing and break nothing', () => {
    const facts = parseCommitMessage(
      's\n\nkpt:{"__proto__":{"package":"evil"},"package":"p","constructor":1}\nSluice-__proto__: x\nSluice-constructor: x\n',
    );
    expect(facts.annotations).toEqual([{ package: 'p', workspaceName: '' }]);
    expect(facts.actor).toBeUndefined();
    const verdict = JSON.stringify(record.verdicts[0]).replace('"content":', '"__proto__":');
    const folded = parseCommitMessage(
      `s\n\nSluice-Record: {"verdicts":[${verdict}],"steps":[],"content":"c"}\n`,
    ).record;
    expect(Object.keys(folded?.verdicts[0]?.inputs ?? { none: '' })).toEqual([]);
    expect(Object.prototype).not.toHaveProperty('package');
  });

  test('a long message is read up to a limit, and truncation is reported', () => {
    const reason = 'x'.repeat(MAX_MESSAGE_LENGTH - 100);
    expect(parseCommitMessage(`s\n\nSluice-Reason: ${reason}\nSluice-Action: edit`)).toMatchObject({
      reason,
      action: 'edit',
    });
    for (const message of [
      `s\n\nSluice-Reason: ${'x'.repeat(MAX_MESSAGE_LENGTH)}\nSluice-Action: edit`,
      `s\n\nSluice-Action: edit\n${'\n'.repeat(MAX_MESSAGE_LENGTH)}`,
      `s\n\nSluice-Action: edit\n${'kpt:{}\n'.repeat(MAX_MESSAGE_LENGTH / 4)}`,
      `s\n\nSluice-Action: edit\nSluice-Statement: ${'x'.repeat(MAX_STATEMENT_LENGTH + 1000)}`,
    ]) {
      expect(parseCommitMessage(message)).toMatchObject({
        action: undefined,
        annotations: [],
        unread: expect.stringMatching(/^it has /),
      });
      expect(parseRemoval(message)).toBeUndefined();
    }
  });

  test('a statement can be longer than the rest of its message, and no message is written that is not read', () => {
    const statement = signed({ draft: 'd'.repeat(MAX_MESSAGE_LENGTH) });
    expect(parseCommitMessage(approval(statement)).statement).toEqual(statement);
    const tooLong = [
      () => approval(signed({ draft: 'd'.repeat(MAX_STATEMENT_LENGTH) })),
      () =>
        approval(
          signed({ record: { ...record, steps: Array.from({ length: MAX_STATEMENT_VALUES }, () => record.steps[0]) } }),
        ),
      () =>
        formatCommitMessage('s', {
          context: { actor: { name: 'ann' }, face: 'cli', reason: 'x'.repeat(MAX_MESSAGE_LENGTH) },
          action: 'edit',
        }),
    ];
    for (const write of tooLong) expect(write).toThrow(expect.objectContaining({ code: 'LimitExceeded' }));
  });

  test('a statement of very many values is none, and is not validated', () => {
    const values = `{"statement":"sluice.dev/v1","record":{"verdicts":[${'{},'.repeat(300_000)}{}]}}`;
    expect(parseCommitMessage(`s\n\nSluice-Statement: ${values}\n`).statement).toBeUndefined();
    expect(parseCommitMessage(`s\n\nSluice-Record: ${values}\n`).record).toBeUndefined();
  });

  test('never throws, and reads back every actor and reason as one line', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(
          fc.constantFrom(
            'kpt:{',
            '}',
            'Sluice-Record: ',
            'Sluice-Statement: ',
            'Sluice-Signature: x',
            'Sluice-Actor: x',
            '\n',
            '\r',
            '\u2028',
            '"',
            ' ',
          ),
          {
            maxLength: 12,
          },
        )
        .map((parts) => parts.join('')),
    );
    const statement = signed();
    fc.assert(
      fc.property(text, text, text, (subject, name, reason) => {
        expect(() => parseCommitMessage(subject)).not.toThrow();
        const facts = parseCommitMessage(
          formatCommitMessage(subject, {
            context: { actor: { name }, face: 'api', reason },
            action: 'approve',
            statement: asWritten(statement),
          }),
        );
        expect(facts.action).toBe('approve');
        expect(facts.face).toBe('api');
        expect(facts.statement).toEqual(statement);
        expect(facts.annotations).toEqual([]);
        expect(facts.actor).not.toMatch(/[\n\r\u2028\u2029\u0000]/);
        if (/^[\x21-\x7e]+$/.test(name)) expect(facts.actor).toBe(name);
        if (/^[\x21-\x7e]+$/.test(reason)) expect(facts.reason).toBe(reason);
      }),
      { numRuns: runs(1000) },
    );
  });
});

test('of very many annotations the first thousand are read', () => {
  const line = (index: number) => `kpt:{"package":"p${index}","workspaceName":"v1"}\n`;
  const message = `subject\n\n${Array.from({ length: 5000 }, (_, index) => line(index)).join('')}Sluice-Action: edit\n`;
  const { annotations, action } = parseCommitMessage(message);
  expect([annotations.length, annotations[999]?.package, action]).toEqual([1000, 'p999', 'edit']);
});

test('a subject is never empty', () => {
  for (const subject of ['', '  ', '\n'])
    expect(formatCommitMessage(subject, { context: { actor: { name: 'a' }, face: 'api' }, action: 'edit' })).toMatch(
      /^Change without a description\n\n/,
    );
});
