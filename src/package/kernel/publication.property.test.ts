import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import {
  type FoldedRecord,
  formatCommitMessage,
  type PackageAnnotation,
  parseCommitMessage,
} from '../commit-message.ts';
import type { Verdict } from '../record.ts';
import { judgePublication, type PublicationFacts } from './publication.ts';

const T = '2026-01-01T00:00:00Z';
const annotation: PackageAnnotation = { package: 'dir/upf', workspaceName: 'w1', revision: '3' };

function verdict(type: string, overrides: Partial<Verdict> = {}): Verdict {
  return { type, status: 'True', inputs: { content: 'c1' }, by: 'ann', face: 'cli', at: T, since: T, ...overrides };
}

const record: FoldedRecord = {
  verdicts: [verdict('A'), verdict('B', { inputs: { 'object:B': 'o1' } })],
  steps: [],
  content: 'c1',
};

function message(
  action = 'approve',
  about: PackageAnnotation = annotation,
  folded: FoldedRecord | undefined = record,
): string {
  return formatCommitMessage('Approving package revision dir/upf/3', {
    annotation: about,
    context: { actor: { name: 'ann' }, face: 'cli' },
    action,
    ...(folded === undefined ? {} : { record: folded }),
  });
}

function facts(text: string, overrides: Partial<PublicationFacts> = {}): PublicationFacts {
  return {
    parents: 2,
    subject: text.split('\n')[0] ?? '',
    commit: parseCommitMessage(text),
    path: 'dir/upf',
    version: 'v3',
    gates: ['A', 'B'],
    conditions: new Map([
      ['A', { type: 'A', status: 'True' }],
      ['B', { type: 'B', status: 'True' }],
      ['C', { type: 'C', status: 'False' }],
    ]),
    ...overrides,
  };
}

const porch = 'Approving package revision dir/upf/3\n\nkpt:{"package":"dir/upf","workspaceName":"w1","revision":"3"}\n';

describe('judgePublication', () => {
  test('an approval by the kernel is in band', () => {
    expect(judgePublication(facts(message()))).toEqual({ inBand: true });
    expect(judgePublication(facts(message(), { content: 'c1', draftContent: 'c1' }))).toEqual({ inBand: true });
    expect(judgePublication(facts(message('approve', { ...annotation, revision: 'v3' })))).toEqual({ inBand: true });
    expect(judgePublication(facts(message(), { gates: [] }))).toEqual({ inBand: true });
  });

  test.each<[string, PublicationFacts, string]>([
    ['a plain commit', facts('hello\n', { parents: 1 }), 'NotAnApprovalCommit'],
    ['the first commit', facts('hello\n', { parents: 0 }), 'NotAnApprovalCommit'],
    ['a merge', facts('Merge pull request #1\n'), 'NotAnApprovalCommit'],
    ['three parents', facts(message(), { parents: 3 }), 'NotAnApprovalCommit'],
    ['an approval that was squashed or picked', facts(message(), { parents: 1 }), 'NotAnApprovalCommit'],
    ['another commit of Sluice', facts(message('edit')), 'NotAnApprovalCommit'],
    ['Porch', facts(porch), 'PorchApproval'],
    ['an old Porch', facts(porch.replace('"3"', '"v3"')), 'PorchApproval'],
    ['Porch, another revision', facts(porch, { version: 'v4' }), 'NotAnApprovalCommit'],
    ['Porch, another package', facts(porch, { path: 'upf' }), 'NotAnApprovalCommit'],
    ['Porch, one parent', facts(porch, { parents: 1 }), 'NotAnApprovalCommit'],
    ['another package', facts(message(), { path: 'dir/smf' }), 'OtherRevision'],
    ['another number', facts(message(), { version: 'v4' }), 'OtherRevision'],
    ['a tag that is no number', facts(message(), { version: 'v3.0.0' }), 'OtherRevision'],
    ['a tag without v', facts(message(), { version: '3' }), 'OtherRevision'],
    ['no revision', facts(message('approve', { package: 'dir/upf', workspaceName: 'w1' })), 'OtherRevision'],
    ['two approvals in one', facts(`${message()}kpt:{"package":"x","revision":"1"}\n`), 'OtherRevision'],
    ['no record', facts(message().replace(/Sluice-Record: .*/, '')), 'NoApprovalRecord'],
    ['a record that cannot be read', facts(message().replace('"steps":[]', '"steps":[')), 'NoApprovalRecord'],
    ['a gate without verdict', facts(message(), { gates: ['A', 'C'] }), 'GateUnmet'],
    [
      'a gate without condition',
      facts(message(), { conditions: new Map([['A', { type: 'A', status: 'True' }]]) }),
      'GateUnmet',
    ],
    [
      'a condition that is False',
      facts(message(), {
        conditions: new Map([
          ['A', { type: 'A', status: 'False' }],
          ['B', { type: 'B', status: 'True' }],
        ]),
      }),
      'GateUnmet',
    ],
    [
      'a verdict that is False',
      facts(message('approve', annotation, { ...record, verdicts: [verdict('A', { status: 'False' }), verdict('B')] })),
      'GateUnmet',
    ],
    [
      'a verdict for other content',
      facts(
        message('approve', annotation, {
          ...record,
          verdicts: [verdict('A', { inputs: { content: 'c0' } }), verdict('B')],
        }),
      ),
      'GateUnmet',
    ],
    [
      'a verdict for nothing',
      facts(message('approve', annotation, { ...record, verdicts: [verdict('A', { inputs: {} }), verdict('B')] })),
      'GateUnmet',
    ],
    ['a gate named like a property', facts(message(), { gates: ['__proto__'] }), 'GateUnmet'],
    ['other content', facts(message(), { content: 'c2' }), 'ContentChanged'],
    ['a draft of other content', facts(message(), { content: 'c1', draftContent: 'c2' }), 'ContentChanged'],
  ])('%s is out of band', (_, input, reason) => {
    const judgement = judgePublication(input);
    expect(judgement).toMatchObject({ inBand: false, reason });
    if (!judgement.inBand) expect(judgement.message).toContain(input.path);
  });

  test('gates that were bypassed stay visible', () => {
    const bypassed = message('approve', annotation, { ...record, verdicts: [], gatesBypassed: true });
    expect(judgePublication(facts(bypassed))).toEqual({
      inBand: true,
      warning: 'dir/upf/v3 was published with closed gates, which were not enforced: A, B',
    });
    expect(judgePublication(facts(bypassed, { gates: [] }))).toMatchObject({
      inBand: true,
      warning: expect.any(String),
    });
    expect(judgePublication(facts(bypassed, { content: 'c2' }))).toMatchObject({ reason: 'ContentChanged' });
  });

  test('never throws and always says something, whatever the message', () => {
    const piece = fc.constantFrom(
      'Approving package revision ',
      'kpt:{"package":"dir/upf","revision":"3"}',
      'Sluice-Action: approve',
      'Sluice-Record: {"verdicts":[],"steps":[],"content":""}',
      'Sluice-Record: {',
      '\n',
      'x',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 10 }),
        fc.integer({ min: 0, max: 3 }),
        fc.boolean(),
        (pieces, parents, gated) => {
          const judgement = judgePublication(facts(pieces.join(''), { parents, gates: gated ? ['A'] : [] }));
          if (judgement.inBand) {
            expect(parents).toBe(2);
            expect(gated).toBe(false);
          } else expect(judgement.message).not.toBe('');
        },
      ),
      { numRuns: runs(2000) },
    );
  });
});
