import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import type { ApprovalRule, FreezeRule, NamedRecurrence } from '../model/policy/approval-rules.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../model/policy/policy.ts';
import type { Approval } from '../model/record/record.ts';
import type { RevisionState, TransitionRequest } from '../model/revision/revision-state.ts';
import { decide } from './decide.ts';

/** A Wednesday, 11:00 in Berlin. */
const NOW = '2026-01-14T10:00:00Z';
const HOUR = 3_600_000;
const PEOPLE = ['anna', 'ben', 'cleo', 'dora'];

const OPEN: NamedRecurrence = { cron: '0 9 * * 1-5', durationMs: 8 * HOUR, timeZone: 'Europe/Berlin' };
const CLOSED: NamedRecurrence = { cron: '0 9 * * 6', durationMs: 8 * HOUR, timeZone: 'Europe/Berlin' };
const NEVER: NamedRecurrence = { cron: '0 0 30 2 *', durationMs: HOUR, timeZone: 'UTC' };
const ENDLESS: NamedRecurrence = { cron: '* * * * *', durationMs: HOUR, timeZone: 'UTC' };

const rule = (overrides: Partial<ApprovalRule> = {}): ApprovalRule => ({
  ...{ policy: 'p', windows: [], freezes: [], soak: {}, inFlight: [] },
  ...overrides,
});
const quorum = (overrides: Partial<NonNullable<ApprovalRule['quorum']>> = {}) =>
  rule({ quorum: { required: 2, from: [], excludeProposer: true, excludeContributors: true, ...overrides } });
const approval = (subject: string, overrides: Partial<Approval> = {}): Approval => ({
  ...{ subject, content: 'c1', tree: 't', at: NOW, face: 'api' },
  ...overrides,
});

function proposed(overrides: Partial<RevisionState> = {}): RevisionState {
  return {
    ...{ name: 'r.p.w', lifecycle: 'Proposed', revision: 0, commit: 'c', problem: undefined },
    facts: {
      ...{ gates: [], proposed: [], conditions: new Map(), record: undefined },
      inputs: { content: 'c1', object: () => undefined, file: () => undefined },
    },
    ...{ proposedBy: 'anna', contributors: [], approvals: [], siblings: [], nestedWith: undefined, dependents: [] },
    proposal: { at: '2026-01-14T08:00:00Z', isUnchanged: true },
    refs: {
      ...{ main: 'main', draft: 'd', proposed: 'q', tag: undefined, deletionProposed: 'x' },
      tagFor: (next) => `v${next}`,
      conflictWith: () => undefined,
    },
    ...{ mainHead: 'm', deletionProposed: undefined },
    ...overrides,
  };
}

function approve(
  policy: Partial<EffectivePolicy>,
  request: Partial<TransitionRequest> = {},
  state: Partial<RevisionState> = {},
  now = NOW,
) {
  const full: TransitionRequest = { action: 'approve', actor: { name: 'ben' }, face: 'api', ...request };
  return decide(proposed(state), full, { ...DEFAULT_POLICY, ...policy }, now);
}

const published = (decision: ReturnType<typeof decide>) => decision.allowed && decision.plan.length > 0;
const refusals = (decision: ReturnType<typeof decide>) =>
  decision.allowed ? [] : decision.refusals.map(({ message }) => message);

const freeze: FreezeRule = {
  ...{ name: 'stop', namespace: 'default', isInstallation: false, reason: 'repair', since: '2026-01-14T09:00:00Z' },
};

/** Rules that block at NOW, each for another reason. */
const BLOCKING: readonly Partial<EffectivePolicy>[] = [
  { approvalRules: [rule({ windows: [CLOSED] })] },
  { approvalRules: [rule({ windows: [NEVER] })] },
  { approvalRules: [rule({ windows: [ENDLESS] })] },
  { approvalRules: [rule({ freezes: [OPEN] })] },
  { approvalRules: [rule({ freezes: [NEVER] })] },
  { approvalRules: [rule({ windows: [OPEN], freezes: [OPEN] })] },
  { approvalRules: [rule({ soak: { proposedMs: 3 * HOUR } })] },
  { approvalRules: [rule({ soak: { proposedMs: Number.POSITIVE_INFINITY } })] },
  { approvalRules: [rule({ soak: { sincePublishedMs: 3 * HOUR } })] },
  {
    approvalRules: [
      rule({ maxInFlight: 1, inFlight: [{ name: 'r.q.w', publishedAt: Date.parse('2026-01-14T07:00:00Z') }] }),
    ],
  },
  { freezes: [freeze] },
  { freezes: [{ ...freeze, until: Date.parse('2026-01-14T10:00:01Z') }] },
];
/** Rules that are met at NOW. */
const MET: readonly Partial<EffectivePolicy>[] = [
  { approvalRules: [rule({ windows: [CLOSED, OPEN] })] },
  { approvalRules: [rule({ freezes: [CLOSED] })] },
  { approvalRules: [rule({ soak: { proposedMs: 2 * HOUR, sincePublishedMs: HOUR } })] },
  { approvalRules: [rule({ maxInFlight: 1 })] },
  { freezes: [{ ...freeze, until: Date.parse(NOW) }] },
];
const published2h = { lastPublishedAt: Date.parse('2026-01-14T08:00:00Z') };

const request = fc.record({
  actor: fc.record({
    name: fc.constantFrom(...PEOPLE, 'controller:approval'),
    groups: fc.subarray(['sre', 'on-call']),
  }),
  face: fc.constantFrom('cli', 'api', 'controller', 'git'),
  breakGlass: fc.boolean(),
  reason: fc.constantFrom('', ' ', 'the site is down'),
}) as fc.Arbitrary<Partial<TransitionRequest>>;
const approvals = fc.array(
  fc
    .record({
      subject: fc.constantFrom(...PEOPLE),
      content: fc.constantFrom('c1', 'c0'),
      face: fc.constantFrom('api', 'cli', 'controller'),
      groups: fc.subarray(['sre', 'on-call']),
    })
    .map(({ subject, ...given }) => approval(subject, given)),
  { maxLength: 5 },
);

describe('rules about time and number', () => {
  test('while one blocks, only break-glass as documented publishes', () => {
    const options = fc.record({
      breakGlass: fc.subarray(['anna', 'group:on-call']),
      forbidSelfApproval: fc.boolean(),
      automatic: fc.subarray(['p']),
      enforcement: fc.constantFrom('enforce', 'warn', 'off'),
    }) as fc.Arbitrary<Partial<EffectivePolicy>>;
    fc.assert(
      fc.property(fc.constantFrom(...BLOCKING), request, approvals, options, (blocked, given, recorded, more) => {
        const decision = approve({ ...more, ...blocked }, given, { approvals: recorded, ...published2h });
        if (!published(decision)) return;
        const { name, groups = [] } = given.actor ?? { name: '' };
        expect(given.breakGlass).toBe(true);
        expect(given.reason?.trim()).not.toBe('');
        const mayBreak = more.breakGlass?.some(
          (one) => one === name || groups.some((group) => one === `group:${group}`),
        );
        expect(mayBreak).toBe(true);
        expect(decision).toMatchObject({ brokeGlass: true });
      }),
      { numRuns: runs(3000) },
    );
  });

  test('those that are met decide nothing', () => {
    const plain = { breakGlass: ['anna'], automatic: ['p'] };
    fc.assert(
      fc.property(
        fc.subarray([...MET]),
        request,
        approvals,
        fc.boolean(),
        (met, given, recorded, forbidSelfApproval) => {
          const own = { ...plain, forbidSelfApproval };
          const policy = {
            ...own,
            approvalRules: met.flatMap(({ approvalRules = [] }) => approvalRules),
            freezes: met.flatMap(({ freezes = [] }) => freezes),
          };
          const state = { approvals: recorded, ...published2h };
          expect(approve(policy, given, state)).toEqual(approve(own, given, state));
        },
      ),
      { numRuns: runs(2000) },
    );
  });

  test('a refusal names the rule, since when, until when, and who can resolve it', () => {
    expect(refusals(approve({ approvalRules: [rule({ windows: [CLOSED] })] }))).toEqual([
      'policy p permits approvals only in its windows: "0 9 * * 6" Europe/Berlin for 8h; blocked since 2026-01-10T16:00:00Z until 2026-01-17T08:00:00Z; it is resolved by users who may change PackagePolicy p, or whom its spec.approval.breakGlass lists',
    ]);
    expect(refusals(approve({ freezes: [{ ...freeze, startedBy: 'anna' }] }))).toEqual([
      'namespace default is frozen by Freeze default/stop since 2026-01-14T09:00:00Z by anna until it is ended (repair); blocked since 2026-01-14T09:00:00Z; it is resolved by users who may delete Freeze default/stop',
    ]);
    const soaking = { approvalRules: [rule({ soak: { proposedMs: 3 * HOUR } })] };
    expect(refusals(approve(soaking))[0]).toContain('blocked since 2026-01-14T08:00:00Z until 2026-01-14T11:00:00Z');
  });

  test('a soak time does not count from the time of a push, which the pusher chooses', () => {
    const soaking = { approvalRules: [rule({ soak: { proposedMs: HOUR } })] };
    expect(published(approve(soaking))).toBe(true);
    for (const proposal of [undefined, { at: '2020-01-01T00:00:00Z', isUnchanged: false }])
      expect(refusals(approve(soaking, {}, { proposal }))[0]).toContain('reject it, then propose it again');
  });

  test('a clock that goes back blocks, and one that is no clock too', () => {
    const soaking = { approvalRules: [rule({ soak: { proposedMs: HOUR, sincePublishedMs: HOUR } })] };
    expect(published(approve(soaking, {}, published2h))).toBe(true);
    expect(published(approve(soaking, {}, published2h, '2026-01-14T07:00:00Z'))).toBe(false);
    for (const policy of [...BLOCKING, ...MET]) expect(published(approve(policy, {}, published2h, 'noon'))).toBe(false);
  });
});

describe('the rules for a merge of the host', () => {
  const merge = { isOnMain: true, onto: 'm', hasProposedTree: true };
  const mergedAt = (at: string, policy: Partial<EffectivePolicy>, now = NOW) =>
    published(approve(policy, { merged: { commit: 'c2', at } }, { merge }, now));
  const ended = { freezes: [{ ...freeze, until: Date.parse('2026-01-14T09:30:00Z') }] };

  test('are those of the time at which it merged, also for a freeze that has ended since', () => {
    for (const at of ['2026-01-14T09:00:00Z', '2026-01-14T09:29:59Z']) expect(mergedAt(at, ended)).toBe(false);
    for (const at of ['2026-01-14T08:59:59Z', '2026-01-14T09:30:00Z']) expect(mergedAt(at, ended)).toBe(true);
    const window = { approvalRules: [rule({ windows: [OPEN] })] };
    expect(mergedAt('2026-01-14T15:59:59Z', window, '2026-01-14T16:00:10Z')).toBe(true);
    expect(mergedAt('2026-01-14T07:59:59Z', window, '2026-01-14T08:00:10Z')).toBe(false);
  });

  test('are also the freezes that are in force when it is read, and its time is never later than that', () => {
    expect(mergedAt('2026-01-14T08:00:00Z', { freezes: [freeze] })).toBe(false);
    expect(mergedAt('2027-01-14T09:00:00Z', { freezes: [freeze] })).toBe(false);
    expect(mergedAt('soon', { freezes: [freeze] })).toBe(false);
  });

  test('that was decided on are not the freezes that began after it was made', () => {
    const decided = { approvals: [approval('ben', { mergeOf: 'c1', at: '2026-01-14T08:50:00Z' })] };
    const decidedMerge = (at: string | undefined, policy: Partial<EffectivePolicy> = { freezes: [freeze] }) => {
      const merged = { commit: 'c2', ...(at === undefined ? {} : { at }) };
      return published(approve(policy, { merged }, { merge, ...decided }, '2026-01-14T09:40:00Z'));
    };
    expect(decidedMerge('2026-01-14T08:51:00Z')).toBe(true);
    // It waited in a merge queue, or the host does not report the time.
    for (const at of ['2026-01-14T09:00:01Z', 'soon', undefined]) expect(decidedMerge(at)).toBe(false);
    const before = { freezes: [{ ...freeze, since: '2026-01-14T08:40:00Z' }] };
    expect(decidedMerge('2026-01-14T08:51:00Z', before)).toBe(false);
    // Another user merged, with no decision.
    expect(mergedAt('2026-01-14T08:51:00Z', { freezes: [freeze] })).toBe(false);
  });
});

describe('a quorum', () => {
  test('is complete with different users of this content, none of whom proposed or changed it', () => {
    const state = fc.record({
      approvals,
      contributors: fc
        .subarray([...PEOPLE, 'push'])
        .map((names) => names.map((name) => ({ name, face: 'api', since: NOW }))),
      proposedBy: fc.constantFrom(...PEOPLE, undefined),
    }) as fc.Arbitrary<Pick<RevisionState, 'approvals' | 'contributors' | 'proposedBy'>>;
    const rules = fc.array(
      fc
        .record({
          required: fc.integer({ min: 1, max: 3 }),
          from: fc.subarray(['group:sre', 'anna', 'cleo']),
          excludeProposer: fc.boolean(),
          excludeContributors: fc.boolean(),
        })
        .map(quorum),
      { minLength: 1, maxLength: 2 },
    );
    fc.assert(
      fc.property(state, rules, request, fc.subarray(['p']), (given, approvalRules, by, automatic) => {
        const decision = approve({ approvalRules, automatic }, { ...by, breakGlass: false }, given);
        if (!published(decision)) return;
        const actor = by.actor ?? { name: '' };
        for (const { quorum: one } of approvalRules) {
          if (one === undefined) continue;
          const counts = (name: string, groups: readonly string[] = []) =>
            (one.from.length === 0 ||
              one.from.some((from) => from === name || groups.some((g) => from === `group:${g}`))) &&
            !(one.excludeProposer && name === given.proposedBy) &&
            !(one.excludeContributors && given.contributors.some((contributor) => contributor.name === name));
          const users = new Set(
            given.approvals
              .filter(
                ({ content, face, subject, groups }) =>
                  content === 'c1' && face !== 'controller' && counts(subject, groups),
              )
              .map(({ subject }) => subject),
          );
          if (by.face !== 'controller' && counts(actor.name, actor.groups)) users.add(actor.name);
          expect(users.size).toBeGreaterThanOrEqual(one.required);
          const isUnknown =
            (one.excludeContributors && given.contributors.some(({ name }) => name === 'push')) ||
            (one.excludeProposer && given.proposedBy === undefined);
          if (isUnknown) expect(users.size).toBeGreaterThan(one.required);
        }
      }),
      { numRuns: runs(5000) },
    );
  });

  test('the last of several users publishes, and each one before is recorded', () => {
    const approvalRules = [quorum({ from: ['group:sre'] })];
    const sre = (name: string) => ({ actor: { name, groups: ['sre'] } });
    expect(approve({ approvalRules }, sre('ben'))).toMatchObject({
      allowed: true,
      plan: [],
      approvals: { given: 1, needed: 2 },
    });
    const recorded = { approvals: [approval('ben', { groups: ['sre'] })] };
    expect(published(approve({ approvalRules }, sre('ben'), recorded))).toBe(false);
    expect(published(approve({ approvalRules }, sre('cleo'), recorded))).toBe(true);
  });

  test('does not count what was approved before the content changed, or in a group that was left', () => {
    const approvalRules = [quorum({ from: ['group:sre'] })];
    const cleo = { actor: { name: 'cleo', groups: ['sre'] } };
    for (const stale of [approval('ben', { content: 'c0', groups: ['sre'] }), approval('ben')])
      expect(published(approve({ approvalRules }, cleo, { approvals: [stale] }))).toBe(false);
  });

  test('refuses a member of the group who changed the content, also beside others', () => {
    const approvalRules = [quorum({ required: 1, from: ['group:sre'] })];
    const contributors = [{ name: 'ben', face: 'api', since: NOW }];
    const ben = { actor: { name: 'ben', groups: ['sre'] } };
    expect(refusals(approve({ approvalRules }, ben, { contributors }))).toEqual([
      'the approval of ben for r.p.w does not count: ben changed its content, and policy p excludes contributors; another user has to approve it',
    ]);
    expect(refusals(approve({ approvalRules }, { actor: { name: 'cleo' } }))[0]).toContain('is none of those');
  });

  test('is not completed by a controller, which publishes only what users have approved', () => {
    const approvalRules = [quorum()];
    const controller = { actor: { name: 'controller:approval' }, face: 'controller' } as const;
    const enough = { approvals: [approval('ben'), approval('cleo')] };
    expect(published(approve({ approvalRules, automatic: ['p'] }, controller, enough))).toBe(true);
    expect(published(approve({ approvalRules }, controller, enough))).toBe(false);
    const one = { approvals: [approval('ben')] };
    expect(approve({ approvalRules, automatic: ['p'] }, controller, one)).toMatchObject({ allowed: false });
  });

  test('is recorded while a rule blocks, and published by a controller after that', () => {
    const blocked = { approvalRules: [quorum(), rule({ windows: [CLOSED] })], automatic: ['p'] };
    const recorded = { approvals: [approval('ben')] };
    const cleo = { actor: { name: 'cleo' } };
    expect(approve(blocked, { actor: { name: 'dora' } })).toMatchObject({ allowed: true, plan: [] });
    expect(approve(blocked, cleo, recorded)).toMatchObject({ plan: [], approvals: { waitsFor: [{ rule: 'Window' }] } });
    // Without automatic approval, the last user has to approve when nothing blocks.
    expect(approve({ ...blocked, automatic: [] }, cleo, recorded)).toMatchObject({ allowed: false });
    expect(published(approve({ ...blocked, automatic: [] }, cleo, recorded, '2026-01-17T09:00:00Z'))).toBe(true);
  });
});

test('a full policy counts what is published apart from approvals that are being decided, which are not', () => {
  const inFlight = [
    ...['r.a.w', 'r.b.w', 'r.c.w', 'r.d.w'].map((name) => ({ name })),
    { name: 'r.q.w', publishedAt: 0 },
  ];
  const messageOf = (overrides: Partial<ApprovalRule>) =>
    refusals(approve({ approvalRules: [rule({ maxInFlight: 2, ...overrides })] }))[0];
  expect(messageOf({ inFlight })).toContain(
    'policy p permits 2 packages in flight, and 1 is published and not yet delivered and healthy: r.q.w; 4 are not published, and being decided: r.a.w, r.b.w, r.c.w and 1 more',
  );
  expect(messageOf({ inFlight: inFlight.slice(0, 2) })).toContain(
    'policy p permits 2 packages in flight, and 2 are not published, and being decided: r.a.w, r.b.w',
  );
});

test('a merge of the Git host while a rule blocks is out of band, with the rule in its statement', () => {
  const merge = { isOnMain: true, onto: 'm0', hasProposedTree: true };
  const policy = { freezes: [freeze] };
  const merged = { commit: 'm1' };
  expect(published(approve(policy, { merged }, { merge }))).toBe(false);
  expect(approve(policy, { merged: { ...merged, recordBypass: true } }, { merge })).toMatchObject({
    allowed: true,
    mergeBypass: { gates: false, notApproved: expect.stringContaining('frozen by Freeze default/stop') },
  });
});
