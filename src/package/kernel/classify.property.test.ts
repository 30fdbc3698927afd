import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import type { Oid } from '../../git/git-repository.ts';
import { RECORD_REFS, type RepositoryLayout } from '../model/identity/layout.ts';
import { formatCommitMessage, type PublicationStatement, parseCommitMessage } from '../model/record/commit-message.ts';
import type { Decision } from '../model/revision/revision-state.ts';
import { STATEMENT_VERSION } from '../trust/statement/statement.ts';
import { asWritten, fakeSigned } from '../trust/testing/fake-signatures.ts';
import { classify, type Finding, type FindingKind, type Knowledge } from './classify.ts';
import type { PublicationFacts, PublicationFlaw } from './publication.ts';
import { Driver } from './testing/driver.ts';
import { PACKAGE } from './testing/package-data.ts';
import { LAYOUT } from './testing/places.ts';

const root: RepositoryLayout = { branch: 'main', directory: '', recordPrefix: RECORD_REFS };
const DRAFT = 'refs/heads/drafts/upf/w1';
const PROPOSED = 'refs/heads/proposed/upf/w1';
const TAG = 'refs/tags/upf/v1';
const MARK = 'refs/heads/deletionProposed/upf/v1';
const MAIN = 'refs/heads/main';
const RECORD = 'refs/sluice/records/upf/w1';

const ignorant: Knowledge = {
  publication: () => undefined,
  distrust: () => undefined,
  isAncestor: () => undefined,
  trustedRecord: () => false,
  decided: () => false,
};

function approval(signed = true, overrides: Partial<PublicationStatement> = {}): PublicationFacts {
  const record = { verdicts: [], steps: [], content: 'c' };
  const statement: PublicationStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: 'id', package: 'upf', workspace: 'w1' },
    ...{ sequence: 2, previous: 'p', revision: 1, tree: 't1', draft: 'd', branch: 'main', onto: 'm', record },
    ...overrides,
  };
  const message = formatCommitMessage('Approving package revision upf/1', {
    annotations: [{ package: 'upf', workspaceName: 'w1', revision: '1' }],
    context: { actor: { name: 'ann' }, face: 'cli' },
    action: 'approve',
    ...(signed ? { statement: asWritten(fakeSigned(statement, 'own')) } : {}),
  });
  const claim = signed ? '' : `Sluice-Record: ${JSON.stringify(record)}\n`;
  return {
    oid: 'a',
    parents: ['m', 'd'],
    subject: '',
    commit: parseCommitMessage(message + claim),
    ...{ repository: 'id', branch: 'main', path: 'upf', version: 'v1', tree: 't1' },
  };
}

type Refs = Readonly<Record<string, Oid>>;

function look(before: Refs, after: Refs, knowledge: Partial<Knowledge> = {}): Finding[] {
  const rest = { 'refs/heads/unrelated': 'x' };
  return classify(
    new Map(Object.entries({ ...rest, ...before })),
    new Map(Object.entries({ ...rest, ...after })),
    root,
    {
      ...ignorant,
      ...knowledge,
    },
  );
}

const isAncestor = (answer: boolean) => ({ isAncestor: () => answer });
const decided = { decided: () => true };
const trusted = { trustedRecord: () => true };
const distrust = (reason: PublicationFlaw) => ({ distrust: () => ({ reason, message: `it is ${reason}` }) });

describe('the table', () => {
  test.each<[string, Refs, Refs, Partial<Knowledge>, FindingKind, boolean]>([
    ['a new draft', {}, { [DRAFT]: 'a' }, {}, 'DraftCreated', true],
    [
      'a draft beside a proposed one',
      { [PROPOSED]: 'a' },
      { [PROPOSED]: 'a', [DRAFT]: 'b' },
      {},
      'DraftCreated',
      false,
    ],
    ['a draft that moved on', { [DRAFT]: 'a' }, { [DRAFT]: 'b' }, isAncestor(true), 'DraftPushed', true],
    ['a draft, by an unknown actor', { [DRAFT]: 'a' }, { [DRAFT]: 'b' }, {}, 'DraftPushed', true],
    ['a rewritten draft', { [DRAFT]: 'a' }, { [DRAFT]: 'b' }, isAncestor(false), 'DraftRewritten', true],
    ['a draft that is gone', { [DRAFT]: 'a' }, {}, {}, 'DraftRemoved', true],
    ['a push that proposes', { [DRAFT]: 'a' }, { [PROPOSED]: 'a' }, {}, 'Moved', false],
    ['a push that proposes beside a trusted record', { [DRAFT]: 'a' }, { [PROPOSED]: 'a' }, trusted, 'Moved', false],
    ['a proposal', { [DRAFT]: 'a' }, { [PROPOSED]: 'a' }, decided, 'Moved', true],
    ['a push that rejects', { [PROPOSED]: 'a' }, { [DRAFT]: 'a' }, {}, 'Moved', false],
    ['a rejection', { [PROPOSED]: 'a' }, { [DRAFT]: 'a' }, decided, 'Moved', true],
    ['a proposed branch out of nothing', {}, { [PROPOSED]: 'a' }, {}, 'ProposedCreated', false],
    ['created and proposed', {}, { [PROPOSED]: 'a' }, decided, 'ProposedCreated', true],
    [
      'a push to a proposed branch',
      { [PROPOSED]: 'a' },
      { [PROPOSED]: 'b' },
      isAncestor(true),
      'ProposedPushed',
      false,
    ],
    ['a condition given to a proposed one', { [PROPOSED]: 'a' }, { [PROPOSED]: 'b' }, decided, 'ProposedPushed', true],
    ['a push to a proposed one', { [PROPOSED]: 'a' }, { [PROPOSED]: 'b' }, trusted, 'ProposedPushed', false],
    ['a proposed branch that is gone', { [PROPOSED]: 'a' }, {}, {}, 'ProposedRemoved', true],
    ['a tag that cannot be read', {}, { [TAG]: 't' }, {}, 'Published', false],
    ['a tag of the kernel', {}, { [TAG]: 't' }, { publication: () => approval() }, 'Published', true],
    ['a tag without a statement', {}, { [TAG]: 't' }, { publication: () => approval(false) }, 'Published', false],
    ['a tag on anything, with any message', {}, { [TAG]: 't' }, { ...decided, ...trusted }, 'Published', false],
    [
      'a tag without a statement, decided all the same',
      {},
      { [TAG]: 't' },
      { publication: () => approval(false), ...decided },
      'Published',
      false,
    ],
    [
      'a moved tag',
      { [TAG]: 't' },
      { [TAG]: 'u' },
      { publication: () => approval(), ...decided, ...trusted },
      'TagMoved',
      false,
    ],
    ['a removed tag', { [TAG]: 't' }, {}, trusted, 'TagRemoved', false],
    ['a removed tag, its mark still there', { [TAG]: 't', [MARK]: 't' }, { [MARK]: 't' }, {}, 'TagRemoved', false],
    ['a removed tag, its mark too', { [TAG]: 't', [MARK]: 't' }, {}, {}, 'TagRemoved', true],
    ['a deletion', { [TAG]: 't' }, {}, decided, 'TagRemoved', true],
    ['a mark', { [TAG]: 't' }, { [TAG]: 't', [MARK]: 't' }, {}, 'DeletionProposed', true],
    ['a mark on nothing', {}, { [MARK]: 't' }, {}, 'DeletionProposed', false],
    [
      'a mark on the package on main',
      {},
      { 'refs/heads/deletionProposed/upf/main': 'm' },
      {},
      'DeletionProposed',
      true,
    ],
    ['a mark undone', { [TAG]: 't', [MARK]: 't' }, { [TAG]: 't' }, {}, 'DeletionUndone', true],
    ['approvals and removals', { [MAIN]: 'm' }, { [MAIN]: 'n' }, decided, 'MainMoved', true],
    ['main rewritten', { [MAIN]: 'm' }, { [MAIN]: 'n' }, {}, 'MainMoved', false],
    ['main that appears', {}, { [MAIN]: 'm' }, {}, 'MainMoved', false],
    ['main that Sluice created', {}, { [MAIN]: 'm' }, decided, 'MainMoved', true],
    ['main that is gone', { [MAIN]: 'm' }, {}, {}, 'MainRemoved', false],
    ['a record', {}, { [RECORD]: 'r' }, trusted, 'RecordChanged', true],
    ['a record without a signer', {}, { [RECORD]: 'r' }, {}, 'RecordChanged', false],
    ['a record that the caller wrote', {}, { [RECORD]: 'r' }, decided, 'RecordChanged', true],
    [
      'the next record',
      { [RECORD]: 'r' },
      { [RECORD]: 's' },
      { ...trusted, ...isAncestor(true) },
      'RecordChanged',
      true,
    ],
    ['the next record, by an unknown actor', { [RECORD]: 'r' }, { [RECORD]: 's' }, trusted, 'RecordChanged', true],
    [
      'a rewritten record',
      { [RECORD]: 'r' },
      { [RECORD]: 's' },
      { ...trusted, ...isAncestor(false) },
      'RecordChanged',
      false,
    ],
    ['something for a record', { [RECORD]: 'r' }, { [RECORD]: 's' }, isAncestor(true), 'RecordChanged', false],
    ['a record without a signer, removed', { [RECORD]: 'r' }, {}, {}, 'RecordRemoved', true],
  ])('%s', (_, before, after, knowledge, kind, inBand) => {
    const findings = look(before, after, knowledge);
    expect(findings.map((finding) => [finding.kind, finding.inBand])).toEqual([[kind, inBand]]);
    expect(findings[0]?.message).toMatch(/^.{10,250}$/);
  });

  test.each<PublicationFlaw>([...(['Unverified', 'BadSignature', 'UntrustedKey', 'RevokedKey', 'NotOnMain'] as const)])(
    'a publication whose statement is distrusted is out of band: %s',
    (reason) => {
      const knowledge = { publication: () => approval(), ...distrust(reason) };
      // What the journal says does not matter: the statement is what counts.
      for (const more of [{}, decided]) {
        expect(look({}, { [TAG]: 't' }, { ...knowledge, ...more })).toMatchObject([
          { kind: 'Published', inBand: false, reason, message: expect.stringContaining(`it is ${reason}`) },
        ]);
      }
    },
  );

  test('a flaw in a statement is reported before its signer, which is not looked up', () => {
    const asked: string[] = [];
    const knowledge = {
      publication: () => approval(true, { tree: 'other' }),
      distrust: (ref: string) => {
        asked.push(ref);
        return { reason: 'UntrustedKey' as const, message: 'it is foreign' };
      },
    };
    expect(look({}, { [TAG]: 't' }, knowledge)).toMatchObject([{ inBand: false, reason: 'ContentChanged' }]);
    expect(asked).toEqual([]);
  });

  test('a record that no trusted key signed is reported with its commit', () => {
    expect(look({ [DRAFT]: 'a', [RECORD]: 'r' }, { [DRAFT]: 'a', [RECORD]: 's' }, isAncestor(true))).toMatchObject([
      {
        ...{ kind: 'RecordChanged', inBand: false, package: 'upf', workspace: 'w1' },
        message: 'the record of upf/w1 was replaced by s, which no trusted key signed; its verdicts do not count',
      },
    ]);
  });

  test('a record matters while its draft is there', () => {
    for (const branch of [DRAFT, PROPOSED]) {
      expect(look({ [branch]: 'a', [RECORD]: 'r' }, { [branch]: 'a' }, trusted)).toMatchObject([
        { kind: 'RecordRemoved', inBand: false, package: 'upf', workspace: 'w1' },
      ]);
      expect(look({ [branch]: 'a', [RECORD]: 'r' }, { [branch]: 'a' }, decided)).toMatchObject([{ inBand: true }]);
    }
    expect(look({ [DRAFT]: 'a', [RECORD]: 'r' }, {})).toMatchObject([
      { kind: 'DraftRemoved' },
      { kind: 'RecordRemoved', inBand: true },
    ]);
  });

  test('a branch that became a tag is reported once', () => {
    for (const branch of [DRAFT, PROPOSED]) {
      const findings = look({ [branch]: 'a' }, { [TAG]: 't' }, { publication: () => approval() });
      expect(findings).toMatchObject([{ kind: 'Published', ref: TAG, package: 'upf', version: 'v1', inBand: true }]);
    }
    const other = look({ 'refs/heads/proposed/upf/w2': 'a' }, { [TAG]: 't' }, { publication: () => approval() });
    expect(other.map(({ kind }) => kind)).toEqual(['ProposedRemoved', 'Published']);
  });

  test('a finding names its refs and their earlier values', () => {
    expect(look({ [DRAFT]: 'a' }, { [PROPOSED]: 'b' })).toEqual([
      {
        kind: 'Moved',
        ref: PROPOSED,
        package: 'upf',
        workspace: 'w1',
        before: 'a',
        after: 'b',
        inBand: false,
        message: 'upf/w1 went from draft to proposed by a plain push, so no gate was evaluated yet',
      },
    ]);
    expect(look({}, { [TAG]: 't' }, { publication: () => approval(false) })[0]).toMatchObject({
      reason: 'UnsignedApproval',
      message: 'the approval of upf/v1 is not signed; "sluice repo adopt" lists it for adoption',
    });
  });

  test('at the first sync there are no moves', () => {
    const after = new Map([
      [MAIN, 'm'],
      [DRAFT, 'a'],
      [TAG, 't'],
    ]);
    const findings = classify(new Map(), after, root, { ...ignorant, publication: () => approval() });
    expect(findings.map(({ kind, inBand }) => [kind, inBand])).toEqual([
      ['DraftCreated', true],
      ['Published', true],
    ]);
  });

  test('refs of other directories, tools and people are ignored', () => {
    const scoped = { ...root, directory: 'net' };
    const after = new Map(
      [
        'refs/heads/drafts/upf/w1',
        'refs/tags/v1',
        'refs/tags/upf/v1',
        'refs/pull/1/head',
        'refs/notes/x',
        'HEAD',
        '',
        '__proto__',
      ].map((ref) => [ref, 'x']),
    );
    expect(classify(new Map([['refs/heads/x', 'x']]), after, scoped, ignorant)).toEqual([]);
    expect(classify(after, new Map([['refs/heads/x', 'x']]), scoped, ignorant)).toEqual([]);
  });

  test('a name cannot steer a terminal', () => {
    const [finding] = look({}, { 'refs/heads/drafts/upf/\u009b31m\u2028x': 'a' });
    expect(finding?.message).toBe('the draft upf/ 31m x is new');
  });
});

describe('whatever happens', () => {
  const ref = fc.constantFrom(
    DRAFT,
    PROPOSED,
    TAG,
    MARK,
    MAIN,
    RECORD,
    'refs/tags/upf/v2.0.0',
    'refs/heads/drafts/upf/w2',
    'refs/heads/x',
    '__proto__',
  );
  const refs = fc
    .dictionary(ref, fc.constantFrom('a', 'b', 'c'), { maxKeys: 8 })
    .map((value) => new Map(Object.entries(value)));
  const answer = fc.constantFrom(true, false, undefined);

  test('each change is reported at most once, in order, and nothing else', () => {
    fc.assert(
      fc.property(refs, refs, answer, fc.boolean(), fc.boolean(), (before, after, ancestor, isTrusted, known) => {
        const knowledge: Knowledge = {
          ...ignorant,
          isAncestor: () => ancestor,
          trustedRecord: () => isTrusted,
          distrust: (_, oid) => (isTrusted || oid === 'b' ? undefined : { reason: 'UntrustedKey', message: 'foreign' }),
          decided: () => known,
          publication: (_, oid) => (oid === 'a' ? approval() : undefined),
        };
        const findings = classify(before, after, root, knowledge);
        expect(classify(before, after, root, knowledge)).toEqual(findings);
        const reported = findings.map((finding) => finding.ref);
        expect(reported).toEqual([...new Set(reported)].sort());
        for (const name of reported) expect(before.get(name)).not.toBe(after.get(name));
        for (const name of [TAG, MAIN]) {
          if (before.size > 0 && before.get(name) !== after.get(name)) expect(reported).toContain(name);
        }
        for (const { kind, inBand } of findings) {
          if (kind === 'TagMoved' || (kind === 'Published' && !isTrusted)) expect(inBand).toBe(false);
          if (kind === 'RecordChanged' && !known && !isTrusted) expect(inBand).toBe(false);
        }
        expect(classify(after, after, root, knowledge)).toEqual([]);
      }),
      { numRuns: runs(2000) },
    );
  });
});

describe('after random sequences', () => {
  const seed = fc.noBias(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));
  const MAIN_REF = `refs/heads/${LAYOUT.branch}`;

  /** A number that was deleted and given again is a moved tag for a server that did not look in between. */
  function isReuse(finding: Finding, before: ReadonlyMap<string, Oid>): boolean {
    return finding.kind === 'TagMoved' && before.has(finding.ref);
  }

  /** What the statement of a merge is out of band for; several flaws are reported in this order. */
  function recordedFlaw({ mergeBypass }: Extract<Decision, { allowed: true }>): PublicationFlaw | undefined {
    if (mergeBypass === undefined) return undefined;
    if (mergeBypass.gates) return 'GateUnmet';
    return mergeBypass.notApproved === undefined ? 'ChangesRequested' : 'NotApproved';
  }

  const RUNS = runs(4000);

  test('nothing that the kernel decided is out of band, at any time of a sync', () => {
    const kinds = new Map<string, number>();
    fc.assert(
      fc.property(seed, fc.array(seed, { minLength: 4, maxLength: 24, size: 'max' }), (start, steps) => {
        const driver = new Driver(start, false);
        let before = new Map(driver.world.refs);
        for (const [index, next] of steps.entries()) {
          driver.step(next);
          if (next % 3 !== 0 && index < steps.length - 1) continue;
          for (const finding of classify(before, driver.world.refs, LAYOUT, driver.world.store.knowledge())) {
            kinds.set(finding.kind, (kinds.get(finding.kind) ?? 0) + 1);
            if (!finding.inBand && !isReuse(finding, before)) throw new Error(JSON.stringify(finding));
          }
          before = new Map(driver.world.refs);
        }
      }),
      { numRuns: RUNS },
    );
    if (!ALL_RUNS) return;
    for (const kind of [
      'Moved',
      'Published',
      'TagRemoved',
      'DeletionProposed',
      'DeletionUndone',
      'MainMoved',
      'RecordChanged',
      'RecordRemoved',
      'DraftRemoved',
      'ProposedPushed',
    ]) {
      expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(10);
    }
  });

  test('what other actors did to a tag or the main branch is out of band, whatever the kernel did around it', () => {
    const foreign = new Map<string, number>();
    let bypasses = 0;
    fc.assert(
      fc.property(seed, fc.array(seed, { minLength: 4, maxLength: 24, size: 'max' }), (start, steps) => {
        const driver = new Driver(start, true);
        /** Tags that the server deleted, and another actor put back: removing them then is what was decided. */
        const replayed = new Set<string>();
        for (const next of steps.slice(0, start % steps.length)) replayed.add(driver.step(next).replayed ?? '');
        const before = new Map(driver.world.refs);
        /** Tags that another actor touched last, and the main branch if another actor ever did. */
        const touched = new Set<string>();
        const everTouched = new Set<string>();
        const endedByKernel = new Set<string>();
        /** Tags of merges that passed by gates, approvals or an objection, with the flaw that the kernel recorded in the statement. */
        const bypassed = new Map<string, PublicationFlaw>();
        let trustChanged = false;
        for (const next of steps.slice(start % steps.length)) {
          const refs = new Map(driver.world.refs);
          const step = driver.step(next);
          const { decision, nextNumber } = step.request ?? {};
          const tag = `refs/tags/${LAYOUT.directory}/${PACKAGE}/v${nextNumber}`;
          if (driver.world.refs.get(tag) !== refs.get(tag)) {
            const flaw = decision?.allowed === true ? recordedFlaw(decision) : undefined;
            if (flaw === undefined) bypassed.delete(tag);
            else bypassed.set(tag, flaw);
          }
          for (const [ref, oid] of refs) {
            const gone = step.request !== undefined && !driver.world.refs.has(ref);
            if (gone && oid === before.get(ref)) endedByKernel.add(ref);
          }
          for (const ref of touched) {
            if (ref !== MAIN_REF && driver.world.refs.get(ref) !== refs.get(ref)) touched.delete(ref);
          }
          for (const ref of step.foreign ?? []) {
            touched.add(ref);
            everTouched.add(ref);
          }
          // What the server published counts there again.
          if (step.replayed !== undefined) everTouched.add(step.replayed);
          replayed.add(step.replayed ?? '');
          trustChanged ||= step.attack === 'lost ledger' || step.attack === 'revoked key';
        }
        const after = driver.world.refs;
        const findings = classify(before, after, LAYOUT, driver.world.store.knowledge());
        for (const ref of touched) {
          // Without any ref before it is a first look.
          if (before.size === 0) continue;
          if (before.get(ref) === after.get(ref) || (!after.has(ref) && endedByKernel.has(ref))) continue;
          // A mark that is gone too: it was undone before, but looks as if the revision was deleted in order.
          const mark = ref.replace('refs/tags/', 'refs/heads/deletionProposed/');
          if (mark !== ref && before.has(mark) && !after.has(mark) && !after.has(ref)) continue;
          if (!after.has(ref) && replayed.has(ref)) continue;
          const finding = findings.find((candidate) => candidate.ref === ref);
          if (finding?.inBand !== false) throw new Error(`${ref}: ${JSON.stringify(finding)}`);
          foreign.set(finding.kind, (foreign.get(finding.kind) ?? 0) + 1);
        }
        for (const [ref, flaw] of bypassed) {
          if (everTouched.has(ref) || before.has(ref) || !after.has(ref)) continue;
          const finding = findings.find((candidate) => candidate.ref === ref);
          if (finding?.inBand !== false || finding.reason !== flaw)
            throw new Error(`${ref}: ${JSON.stringify(finding)}`);
          bypasses += 1;
        }
        for (const finding of findings) {
          const about = finding.ref === MAIN_REF || finding.ref.startsWith(`refs/tags/${LAYOUT.directory}/${PACKAGE}/`);
          if (trustChanged && finding.kind === 'Published') continue;
          if (finding.reason !== undefined && finding.reason === bypassed.get(finding.ref)) continue;
          if (about && !finding.inBand && !everTouched.has(finding.ref) && !isReuse(finding, before))
            throw new Error(JSON.stringify(finding));
        }
      }),
      {
        numRuns: RUNS,
        examples: [
          // The Git host merged a proposal although changes were requested, and the kernel recorded that.
          [0, [591231438009575, 7932584059939437, 7195228968660619, 5399597910473635, 0, 0, 0, 0]],
          [0, [0, 440661518082500, 2247270855252607, 5503966212825355]],
        ],
      },
    );
    const kinds = ['MainMoved', 'MainRemoved', 'Published', 'TagMoved', 'TagRemoved'];
    expect(kinds).toEqual(expect.arrayContaining([...foreign.keys()]));
    if (!ALL_RUNS) return;
    expect([...foreign.keys()].sort()).toEqual(kinds);
    expect(bypasses).toBeGreaterThan(0);
  });
});
