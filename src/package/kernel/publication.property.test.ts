import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import {
  type FoldedRecord,
  formatCommitMessage,
  type PackageAnnotation,
  type PublicationStatement,
  parseCommitMessage,
} from '../model/record/commit-message.ts';
import { STATEMENT_VERSION } from '../trust/statement/statement.ts';
import { asWritten, fakeSigned } from '../trust/testing/fake-signatures.ts';
import { evaluatePublication, type PublicationFacts } from './publication.ts';

const annotation: PackageAnnotation = { package: 'dir/upf', workspaceName: 'w1', revision: '3' };

const record: FoldedRecord = {
  verdicts: [],
  steps: [],
  content: 'c1',
  gates: [
    { type: 'A', requiredBy: ['Kptfile'], state: 'Open' },
    { type: 'B', requiredBy: ['policy p'], state: 'Open' },
  ],
};

function closed(overrides: Partial<FoldedRecord> = {}, ...states: string[]): Partial<PublicationStatement> {
  const gates = states.map((state, index) => ({ type: `G${index}`, requiredBy: ['Kptfile'], state }));
  return { record: { ...record, gates, ...overrides } };
}

function statement(overrides: Partial<PublicationStatement> = {}): PublicationStatement {
  return {
    ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: 'id', package: 'dir/upf', workspace: 'w1' },
    ...{ sequence: 4, previous: 'p', revision: 3, tree: 't1', draft: 'd1', branch: 'main', onto: 'm', record },
    ...overrides,
  };
}

/** The message of an approval commit. */
function message(overrides: Partial<PublicationStatement> = {}): string {
  return formatCommitMessage('Approving package revision dir/upf/3', {
    annotations: [annotation],
    context: { actor: { name: 'ann' }, face: 'cli' },
    action: 'approve',
    statement: asWritten(fakeSigned(statement(overrides), 'own')),
  });
}

/** As earlier versions approved. */
function unsigned(action = 'approve', folded = JSON.stringify(record)): string {
  const plain = formatCommitMessage('Approving package revision dir/upf/3', {
    annotations: [annotation],
    context: { actor: { name: 'ann' }, face: 'cli' },
    action,
  });
  return `${plain}Sluice-Record: ${folded}\n`;
}

function facts(text: string, overrides: Partial<PublicationFacts> = {}): PublicationFacts {
  return {
    oid: 'a',
    parents: ['m', 'd1'],
    branch: 'main',
    subject: text.split('\n')[0] ?? '',
    commit: parseCommitMessage(text),
    repository: 'id',
    path: 'dir/upf',
    version: 'v3',
    tree: 't1',
    ...overrides,
  };
}

const porch = 'Approving package revision dir/upf/3\n\nkpt:{"package":"dir/upf","workspaceName":"w1","revision":"3"}\n';

describe('evaluatePublication', () => {
  test('a statement that matches the publication is in band, for any author of the commit', () => {
    expect(evaluatePublication(facts(message()))).toEqual({ inBand: true });
    expect(evaluatePublication(facts(message(closed())))).toEqual({ inBand: true });
    expect(evaluatePublication(facts(message({ record: { verdicts: [], steps: [], content: 'c1' } })))).toEqual({
      inBand: true,
    });
    // A host made the merge, and the statement stands in an annotated tag.
    for (const parents of [['m'], ['m', 'd1', 'd2'], ['m', 'other']]) {
      expect(evaluatePublication(facts(message(), { parents, subject: 'Merge pull request #1' }))).toEqual({
        inBand: true,
      });
    }
  });

  test('a statement that names the commit counts for it, whatever its other parents are', () => {
    const parents = ['m', 'd0', 'd1', 'd2'];
    expect(evaluatePublication(facts(message({ sharedCommit: 'a' }), { oid: 'a', parents }))).toEqual({ inBand: true });
    expect(evaluatePublication(facts(message({ sharedCommit: 'a' }), { oid: 'b', parents }))).toEqual({
      ...{ inBand: false, reason: 'OtherCommit' },
      message: 'dir/upf/v3 carries a copy of a statement that was made for the commit a',
    });
  });

  test.each<[string, PublicationFacts, string]>([
    ['a plain commit', facts('hello\n', { parents: ['m'] }), 'NotAnApproval'],
    ['the first commit', facts('hello\n', { parents: [] }), 'NotAnApproval'],
    ['a merge', facts('Merge pull request #1\n'), 'NotAnApproval'],
    ['another commit of Sluice', facts(unsigned('edit')), 'NotAnApproval'],
    ['an unsigned approval', facts(unsigned()), 'UnsignedApproval'],
    ['an unsigned approval that was squashed or picked', facts(unsigned(), { parents: ['m'] }), 'NotAnApproval'],
    ['an unsigned approval that cannot be read', facts(unsigned('approve', '{')), 'NotAnApproval'],
    ['a statement that cannot be read', facts(message().replace('"sequence":4', '"sequence":"4"')), 'NotAnApproval'],
    ['a statement of a later version', facts(message().replace('sluice.dev/v1', 'sluice.dev/v9')), 'NotAnApproval'],
    ['Porch', facts(porch), 'PorchApproval'],
    ['an old Porch', facts(porch.replace('"3"', '"v3"')), 'PorchApproval'],
    ['Porch, another revision', facts(porch, { version: 'v4' }), 'NotAnApproval'],
    ['Porch, another package', facts(porch, { path: 'upf' }), 'NotAnApproval'],
    ['Porch, one parent', facts(porch, { parents: ['m'] }), 'NotAnApproval'],
    ['another repository', facts(message({ repository: 'other' })), 'OtherRepository'],
    ['another branch', facts(message({ branch: 'dev' })), 'OtherBranch'],
    ['a copy of the statement in another commit', facts(message(), { parents: ['n', 'd1'] }), 'OtherCommit'],
    ['a copy of the statement of a shared commit', facts(message({ sharedCommit: 'b' })), 'OtherCommit'],
    ['a copy in a first commit', facts(message(), { parents: [] }), 'OtherCommit'],
    ['another package', facts(message(), { path: 'dir/smf' }), 'OtherRevision'],
    ['a package of another directory', facts(message(), { path: 'upf' }), 'OtherRevision'],
    ['another number', facts(message(), { version: 'v4' }), 'OtherRevision'],
    ['a tag that is no number', facts(message(), { version: 'v3.0.0' }), 'OtherRevision'],
    ['a tag without v', facts(message(), { version: '3' }), 'OtherRevision'],
    ['other content', facts(message(), { tree: 't2' }), 'ContentChanged'],
    ['no content', facts(message(), { tree: undefined }), 'ContentChanged'],
    ...['Missing', 'NotTrue', 'Unproven', 'Stale', 'Expired', 'NotAllowed', 'open', ''].map(
      (state): [string, PublicationFacts, string] => [
        `a gate that was ${state}`,
        facts(message(closed({}, 'Open', state))),
        'GateUnmet',
      ],
    ),
    ['a merge with closed gates', facts(message(closed({ mergeBypass: {} }, 'Missing'))), 'GateUnmet'],
    [
      'a merge with closed gates and without approvals',
      facts(message(closed({ mergeBypass: { notApproved: '1 of 2' } }, 'Missing'))),
      'GateUnmet',
    ],
    ...[[], ['Open']].map((states): [string, PublicationFacts, string] => [
      `a merge without approvals, with ${states.length} open gates`,
      facts(message(closed({ mergeBypass: { notApproved: '1 of 2' } }, ...states))),
      'NotApproved',
    ]),
    ...[{ gatesBypassed: true }, { breakGlass: { by: 'bob', reason: 'x' } }].map(
      (passed): [string, PublicationFacts, string] => [
        `a merge without approvals, with gates passed by ${Object.keys(passed)[0]}`,
        facts(message(closed({ ...passed, mergeBypass: { notApproved: '1 of 2' } }, 'Missing'))),
        'NotApproved',
      ],
    ),
    ['gates said not to be bypassed', facts(message(closed({ gatesBypassed: false }, 'Missing'))), 'GateUnmet'],
  ])('%s is out of band', (_, input, reason) => {
    const evaluation = evaluatePublication(input);
    expect(evaluation).toMatchObject({ inBand: false, reason });
    if (!evaluation.inBand) expect(evaluation.message).toContain(input.path);
  });

  test('the words of an annotation or of an unsigned record do not matter beside a statement', () => {
    const others = `kpt:{"package":"x","revision":"1"}\n${unsigned().split('\n').at(-2)?.replace('c1', 'c2')}\n`;
    expect(evaluatePublication(facts(message() + others))).toEqual({ inBand: true });
  });

  test('gates that were not enforced stay visible', () => {
    const bypassed = message(closed({ gatesBypassed: true }, 'Missing', 'Open', 'Stale'));
    expect(evaluatePublication(facts(bypassed))).toEqual({
      inBand: true,
      warning: 'dir/upf/v3 was published with closed gates, which were not enforced: G0, G2',
    });
    expect(evaluatePublication(facts(bypassed, { tree: 't2' }))).toMatchObject({ reason: 'ContentChanged' });
  });

  test('broken glass stays visible, with who broke it and why', () => {
    const broken = message(closed({ breakGlass: { by: 'bob', reason: 'outage 7' }, gatesBypassed: true }, 'Missing'));
    expect(evaluatePublication(facts(broken))).toEqual({
      inBand: true,
      warning: 'dir/upf/v3 was published with closed gates by bob, who may break the glass (outage 7): G0',
    });
    expect(evaluatePublication(facts(broken, { repository: 'copy' }))).toMatchObject({ reason: 'OtherRepository' });
  });

  test('never throws and always returns a finding, for any message', () => {
    const piece = fc.constantFrom(
      'Approving package revision ',
      'kpt:{"package":"dir/upf","revision":"3"}',
      'Sluice-Action: approve',
      'Sluice-Record: {"verdicts":[],"steps":[],"content":""}',
      'Sluice-Record: {',
      'Sluice-Statement: {',
      ...message()
        .split('\n')
        .filter((line) => line.startsWith('Sluice-')),
      '\n',
      'x',
    );
    const arbitrary = fc.tuple(fc.array(piece, { maxLength: 10 }), fc.subarray(['m', 'd1', 'd2']), fc.boolean());
    fc.assert(
      fc.property(arbitrary, ([pieces, parents, same]) => {
        const input = facts(pieces.join(''), { parents, ...(same ? {} : { tree: 't2' }) });
        const evaluation = evaluatePublication(input);
        if (evaluation.inBand) {
          expect(same).toBe(true);
          expect(input.commit.statement?.statement).toEqual(statement());
        } else expect(evaluation.message).not.toBe('');
      }),
      { numRuns: runs(2000) },
    );
  });
});
