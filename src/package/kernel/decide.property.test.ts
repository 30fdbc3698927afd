import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../model/policy/policy.ts';
import {
  ACTIONS,
  type Action,
  type Decision,
  LIFECYCLES,
  type Lifecycle,
  type RevisionState,
  type TransitionRequest,
} from '../model/revision/revision-state.ts';
import { decide } from './decide.ts';

const NOW = '2026-01-01T00:00:00Z';

describe('decide is total', () => {
  const text = fc.oneof(fc.constantFrom('', 'c1', 'c2', '__proto__', 'constructor', 'G', 'main'), fc.string());
  const lifecycle = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<string>(...LIFECYCLES) },
    { weight: 1, arbitrary: text },
  );
  const action = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom<string>(...ACTIONS) },
    { weight: 1, arbitrary: text },
  );
  const maybe = fc.option(text, { nil: undefined });
  const status = fc.constantFrom('True', 'False', 'Unknown', 'true', '');
  const verdict = fc.record({
    type: text,
    status,
    inputs: fc.dictionary(text, text),
    by: text,
    face: text,
    at: text,
    since: text,
  });
  const state = fc.record({
    name: text,
    lifecycle,
    revision: fc.oneof(fc.integer(), fc.double()),
    commit: text,
    problem: maybe,
    facts: fc.record({
      gates: fc.array(text, { maxLength: 3 }),
      conditions: fc
        .array(fc.tuple(text, fc.record({ type: text, status })), { maxLength: 3 })
        .map((pairs) => new Map(pairs)),
      record: fc.option(
        fc.record({
          version: fc.constant(1),
          commit: text,
          verdicts: fc.array(verdict, { maxLength: 3 }),
          steps: fc.constant([]),
        }),
        { nil: undefined },
      ),
      inputs: text.map((content) => ({ content, object: () => content, file: () => undefined })),
      proposed: fc.array(text, { maxLength: 2 }),
    }),
    proposedBy: maybe,
    contributors: fc.array(fc.record({ name: text, face: text, since: text }), { maxLength: 3 }),
    approvals: fc.array(fc.record({ subject: text, content: text, tree: text, at: text, face: text }), {
      maxLength: 3,
    }),
    siblings: fc.array(fc.record({ name: text, lifecycle, revision: fc.oneof(fc.integer(), fc.double()) }), {
      maxLength: 4,
    }),
    nestedWith: maybe,
    dependents: fc.array(text, { maxLength: 2 }),
    refs: fc.record({
      main: text,
      draft: text,
      proposed: text,
      tag: maybe,
      deletionProposed: text,
      tagFor: fc.constant((revision: number) => `v${revision}`),
      conflictWith: fc.constantFrom(
        () => undefined,
        (tag: string) => (tag.endsWith('1') ? tag : undefined),
        (tag: string) => (tag === 'v1' ? 'v1/x' : undefined),
        () => 'v',
      ),
    }),
    mainHead: maybe,
    deletionProposed: maybe,
  });
  const request = fc
    .record({
      action,
      actor: fc.record({ name: text, groups: fc.array(text, { maxLength: 2 }) }),
      face: text,
      reason: maybe,
      breakGlass: fc.option(fc.boolean(), { nil: undefined }),
    })
    .chain((fixed) =>
      maybe.map((expectedCommit) => ({ ...fixed, ...(expectedCommit === undefined ? {} : { expectedCommit }) })),
    );
  const recurrence = fc.record({
    cron: fc.oneof(fc.constantFrom('0 9 * * 1-5', '0 0 30 2 *', '* * * * *'), text),
    durationMs: fc.oneof(fc.constant(3_600_000), fc.double()),
    timeZone: fc.oneof(fc.constantFrom('UTC', 'Europe/Berlin'), text),
  });
  const policy = fc.record({
    enforcement: fc.constantFrom('enforce', 'warn', 'off', ''),
    requiredGates: fc.array(fc.record({ conditionType: text, approveOnly: fc.boolean(), policy: text }), {
      maxLength: 3,
    }),
    givers: fc.array(fc.record({ conditionType: text, actors: fc.array(text, { maxLength: 2 }), policy: text }), {
      maxLength: 2,
    }),
    approvalRules: fc.array(
      fc.record({
        policy: text,
        quorum: fc.option(
          fc.record({
            required: fc.integer({ min: -1, max: 3 }),
            from: fc.array(text, { maxLength: 2 }),
            excludeProposer: fc.boolean(),
            excludeContributors: fc.boolean(),
          }),
          { nil: undefined },
        ),
        windows: fc.array(recurrence, { maxLength: 2 }),
        freezes: fc.array(recurrence, { maxLength: 2 }),
        soak: fc.record({ proposedMs: fc.option(fc.double(), { nil: undefined }) }),
        maxInFlight: fc.option(fc.integer(), { nil: undefined }),
        inFlight: fc.array(fc.record({ name: text, publishedAt: fc.option(fc.double(), { nil: undefined }) }), {
          maxLength: 2,
        }),
      }),
      { maxLength: 2 },
    ),
    automatic: fc.array(text, { maxLength: 1 }),
    freezes: fc.array(
      fc.record({
        ...{ name: text, namespace: text, isInstallation: fc.boolean(), reason: text, since: text },
        until: fc.option(fc.double(), { nil: undefined }),
      }),
      { maxLength: 1 },
    ),
    pushDenied: fc.array(text, { maxLength: 2 }),
    forbidSelfApproval: fc.boolean(),
    breakGlass: fc.array(text, { maxLength: 2 }),
    validFor: fc.array(fc.record({ conditionType: text, milliseconds: fc.oneof(fc.integer(), fc.double()) }), {
      maxLength: 2,
    }),
  });

  test('it answers every state and request, the same each time', () => {
    fc.assert(
      fc.property(state, request, policy, fc.oneof(fc.constant(NOW), text), (oddState, oddRequest, oddPolicy, now) => {
        const run = (): Decision =>
          decide(
            oddState as unknown as RevisionState,
            oddRequest as unknown as TransitionRequest,
            { ...DEFAULT_POLICY, ...oddPolicy } as EffectivePolicy,
            now,
          );
        const decision = run();
        expect(run()).toEqual(decision);
        if (decision.allowed) {
          // Only an approval that is not enough yet changes no ref.
          expect(decision.plan.length > 0).toBe(decision.approvals === undefined);
          for (const { expect: before } of decision.plan)
            expect(before === null || typeof before === 'string').toBe(true);
        } else {
          expect(decision.refusals.length).toBeGreaterThan(0);
          for (const { message } of decision.refusals) expect(message).not.toBe('');
        }
      }),
      { numRuns: runs(5000) },
    );
  });
});

describe('single cases', () => {
  function stateIn(lifecycle: Lifecycle, overrides: Partial<RevisionState> = {}): RevisionState {
    return {
      name: 'r.p.w',
      lifecycle,
      revision: lifecycle === 'Draft' || lifecycle === 'Proposed' ? 0 : 1,
      commit: 'c1',
      problem: undefined,
      facts: {
        gates: [],
        conditions: new Map(),
        record: undefined,
        inputs: { content: 'x', object: () => undefined, file: () => undefined },
      },
      proposedBy: 'ann',
      contributors: [],
      approvals: [],
      siblings: [],
      nestedWith: undefined,
      dependents: [],
      refs: {
        main: 'refs/heads/main',
        draft: 'refs/heads/drafts/p/w',
        proposed: 'refs/heads/proposed/p/w',
        tag: lifecycle === 'Draft' || lifecycle === 'Proposed' ? undefined : 'refs/tags/p/v1',
        deletionProposed: 'refs/heads/deletionProposed/p/v1',
        tagFor: (revision) => `refs/tags/p/v${revision}`,
        conflictWith: () => undefined,
      },
      mainHead: 'm1',
      deletionProposed: lifecycle === 'DeletionProposed' ? 'c1' : undefined,
      ...overrides,
    };
  }
  const ask = (state: RevisionState, action: Action, policy: Partial<EffectivePolicy> = {}, actor = 'bob') =>
    decide(state, { action, actor: { name: actor }, face: 'api' }, { ...DEFAULT_POLICY, ...policy }, NOW);
  /** `open` says what a gate named G needs to be open in these facts. */
  const gated = (open: boolean, overrides: Partial<RevisionState['facts']> = {}): Partial<RevisionState> => ({
    facts: {
      ...stateIn('Proposed').facts,
      gates: ['G'],
      conditions: new Map([['G', { type: 'G', status: open ? 'True' : 'False' }]]),
      record: {
        ...{ version: 1, commit: 'c1', steps: [] },
        verdicts: [
          {
            type: 'G',
            status: open ? 'True' : 'False',
            inputs: { content: 'x' },
            by: 'qa',
            face: 'api',
            at: NOW,
            since: NOW,
          },
        ],
      },
      ...overrides,
    },
  });
  const contributor = (name: string) => ({ name, face: 'api', since: NOW });
  const approval = (subject: string, content = 'x') => ({ subject, content, tree: 't', at: NOW, face: 'api' });
  const refusalsOf = (decision: Decision) => (decision.allowed ? [] : decision.refusals);

  test('approval is one plan: main and the tag on one new commit, the branch removed', () => {
    const siblings = [
      { name: 'a', lifecycle: 'Published', revision: 7 },
      { name: 'main', lifecycle: 'Published', revision: -1 },
    ] as const;
    expect(ask(stateIn('Proposed', { siblings }), 'approve')).toEqual({
      allowed: true,
      plan: [
        { ref: 'refs/heads/main', expect: 'm1', become: { kind: 'approval' } },
        { ref: 'refs/tags/p/v8', expect: null, become: { kind: 'approval' } },
        { ref: 'refs/heads/proposed/p/w', expect: 'c1', become: { kind: 'absent' } },
      ],
      next: { lifecycle: 'Published', revision: 8 },
      bypassed: [],
    });
  });

  test('a draft beside a proposal whose branch was restored ends with it, if it is the same', () => {
    const [draft, proposed] = ['refs/heads/drafts/p/w', 'refs/heads/proposed/p/w'];
    const restored = stateIn('Proposed', { isRestored: true, draft: 'c1' });
    const removed = { ref: draft, expect: 'c1', become: { kind: 'absent' } };
    for (const action of ['propose', 'approve', 'delete'] as const) {
      const decision = ask(restored, action);
      expect(decision.allowed && decision.plan).toContainEqual(removed);
    }
    expect(ask(stateIn('Proposed'), 'propose')).toMatchObject({ refusals: [{ code: 'WrongState' }] });
    expect(ask(restored, 'reject')).toMatchObject({
      plan: [
        { ref: draft, expect: 'c1', become: { kind: 'commit', oid: 'c1' } },
        { ref: proposed, expect: 'c1', become: { kind: 'absent' } },
      ],
    });
    const other = { ...restored, draft: 'c2' };
    expect(ask(other, 'reject')).toMatchObject({ refusals: [{ code: 'WrongState' }] });
    for (const action of ['propose', 'approve', 'delete'] as const) {
      const decision = ask(other, action);
      expect(decision.allowed && decision.plan).not.toContainEqual(expect.objectContaining({ ref: draft }));
    }
  });

  test('deleting the placeholder removes the package from main, deleting a revision its tag', () => {
    const placeholder = stateIn('DeletionProposed', {
      revision: -1,
      commit: 'm1',
      refs: { ...stateIn('Draft').refs, tag: undefined },
    });
    expect(ask(placeholder, 'delete')).toMatchObject({
      plan: [
        { ref: 'refs/heads/deletionProposed/p/v1', expect: 'c1', become: { kind: 'absent' } },
        { ref: 'refs/heads/main', expect: 'm1', become: { kind: 'removal' } },
      ],
    });
    expect(ask(stateIn('DeletionProposed'), 'delete')).toMatchObject({
      next: undefined,
      plan: [
        { ref: 'refs/heads/deletionProposed/p/v1' },
        { ref: 'refs/tags/p/v1', expect: 'c1', become: { kind: 'absent' } },
      ],
    });
  });

  test("Porch's clients find Porch's texts", () => {
    expect(refusalsOf(ask(stateIn('Draft'), 'approve'))[0]?.message).toBe(
      'cannot approve package with Draft lifecycle value; only Proposed packages can be approved',
    );
    expect(refusalsOf(ask(stateIn('Published'), 'delete'))[0]?.message).toBe(
      "published PackageRevisions must be proposed for deletion by setting spec.lifecycle to 'DeletionProposed' prior to deletion",
    );
    expect(refusalsOf(ask(stateIn('DeletionProposed', { dependents: ['r.x.v1'] }), 'delete'))[0]?.message).toBe(
      'cannot delete package revision, it is referenced as upstream by: r.x.v1',
    );
  });

  test('a closed gate is reported with its name, its time and the message of the condition', () => {
    const verdict = {
      type: 'G',
      status: 'False' as const,
      inputs: { content: 'x' },
      by: 'ann',
      face: 'cli',
      at: NOW,
      since: '2025-12-31T00:00:00Z',
    };
    const facts = {
      ...stateIn('Draft').facts,
      gates: ['G'],
      conditions: new Map([
        ['G', { type: 'G', status: 'False' as const, reason: 'PoolExhausted', message: 'no address left' }],
      ]),
      record: { version: 1 as const, commit: 'c1', verdicts: [verdict], steps: [] },
    };
    const [refusal] = refusalsOf(ask(stateIn('Draft', { facts }), 'propose'));
    expect(refusal).toMatchObject({
      code: 'GateUnmet',
      gate: { type: 'G', state: 'NotTrue', since: '2025-12-31T00:00:00Z' },
    });
    for (const part of ['G', '2025-12-31', 'PoolExhausted', 'no address left'])
      expect(refusal?.message).toContain(part);
  });

  describe('where a policy forbids that people approve their own changes', () => {
    const forbid = { forbidSelfApproval: true };
    const approve = (overrides: Partial<RevisionState>, actor = 'bob', policy: Partial<EffectivePolicy> = forbid) =>
      ask(stateIn('Proposed', overrides), 'approve', policy, actor);
    const published = { allowed: true, next: { lifecycle: 'Published' } };

    test('the proposer and every contributor are refused, with the reason', () => {
      expect(approve({})).toMatchObject(published);
      const [own] = refusalsOf(approve({}, 'ann'));
      expect(own).toMatchObject({ code: 'NotAllowed', message: expect.stringContaining('ann proposed r.p.w') });
      const contributors = [contributor('bob'), contributor('eve')];
      for (const actor of ['bob', 'eve']) {
        const [changed] = refusalsOf(approve({ contributors }, actor));
        expect(changed).toMatchObject({ code: 'NotAllowed', message: expect.stringContaining(`${actor} changed`) });
      }
      expect(approve({ contributors }, 'carl')).toMatchObject(published);
      expect(approve({ contributors }, 'bob', {})).toMatchObject(published);
    });

    test('a controller that proposed does not hide who changed the content', () => {
      const state = { proposedBy: 'controller:auto-propose', contributors: [contributor('ann')] };
      expect(refusalsOf(approve(state, 'ann'))[0]?.code).toBe('NotAllowed');
      expect(approve(state, 'bob')).toMatchObject(published);
    });

    test('a controller cannot approve what others did', () => {
      const request = { action: 'approve', actor: { name: 'controller:approval' }, face: 'controller' } as const;
      const by = (policy: object) => decide(stateIn('Proposed'), request, { ...DEFAULT_POLICY, ...policy }, NOW);
      expect(refusalsOf(by(forbid))).toMatchObject([{ code: 'NotAllowed', message: expect.stringContaining('user') }]);
      expect(by({})).toMatchObject(published);
      const approvals = [{ ...approval('controller:approval'), face: 'controller' }];
      const pushed = { contributors: [contributor('push')], approvals };
      expect(approve(pushed)).toMatchObject({ plan: [], approvals: { given: 1, needed: 2 } });
    });

    test.each<[string, Partial<RevisionState>]>([
      ['a contributor that is a push', { contributors: [contributor('push')] }],
      ['a push beside a known contributor', { contributors: [contributor('eve'), contributor('push')] }],
      ['a proposal by a push', { proposedBy: 'push' }],
      ['a proposal by an unknown actor', { proposedBy: undefined }],
    ])('%s needs two approvers', (_, overrides) => {
      const first = approve(overrides);
      expect(first).toEqual({
        ...{ allowed: true, plan: [], next: { lifecycle: 'Proposed', revision: 0 }, bypassed: [] },
        approvals: { given: 1, needed: 2, missingIn: [] },
      });
      const approvals = [approval('bob')];
      expect(approve({ ...overrides, approvals }, 'bob')).toMatchObject({ approvals: { given: 1, needed: 2 } });
      expect(approve({ ...overrides, approvals }, 'carl')).toMatchObject(published);
      expect(approve({ ...overrides, approvals }, 'carl')).not.toHaveProperty('approvals');
      expect(approve(overrides, 'bob', {})).toMatchObject(published);
    });

    test('an approval of other content, by a contributor or by the proposer does not count', () => {
      const contributors = [contributor('push'), contributor('eve')];
      for (const approvals of [[approval('carl', 'y')], [approval('eve')], [approval('ann')], [approval('push')]]) {
        const decision = approve({ contributors, approvals });
        expect(decision).toMatchObject({ allowed: true, plan: [], approvals: { given: 1, needed: 2 } });
      }
      const approvals = [approval('eve'), approval('carl', 'y'), approval('dan')];
      expect(approve({ contributors, approvals })).toMatchObject(published);
    });

    test('an insufficient approval also needs open gates', () => {
      const contributors = [contributor('push')];
      expect(refusalsOf(approve({ contributors, ...gated(false) }))).toMatchObject([{ code: 'GateUnmet' }]);
      expect(approve({ contributors, ...gated(true) })).toMatchObject({ approvals: { given: 1, needed: 2 } });
      expect(refusalsOf(approve({ contributors, approvals: [approval('carl')], ...gated(false) }))).toMatchObject([
        { code: 'GateUnmet' },
      ]);
    });
  });

  describe('breaking the glass', () => {
    const policy = { breakGlass: ['bob', 'group:oncall'] };
    const at = (request: Partial<TransitionRequest>, rules: Partial<EffectivePolicy> = policy, state = gated(false)) =>
      decide(
        stateIn('Proposed', state),
        { action: 'approve', actor: { name: 'bob' }, face: 'cli', breakGlass: true, reason: 'outage 7', ...request },
        { ...DEFAULT_POLICY, ...rules },
        NOW,
      );

    test('permits an actor whom a policy names to pass closed gates with a reason, and records it', () => {
      const decision = at({});
      expect(decision).toMatchObject({
        allowed: true,
        brokeGlass: true,
        next: { lifecycle: 'Published', revision: 1 },
      });
      expect(decision.allowed && decision.bypassed.map(({ gate }) => gate?.type)).toEqual(['G']);
      expect(at({ actor: { name: 'dan', groups: ['oncall'] } })).toMatchObject({ allowed: true, brokeGlass: true });
    });

    test.each<[string, Partial<TransitionRequest>, Partial<EffectivePolicy>, string]>([
      [
        'an actor whom no policy names',
        { actor: { name: 'eve', groups: ['dev'] } },
        policy,
        'spec.approval.breakGlass',
      ],
      ['where there is no such policy', {}, {}, 'spec.approval.breakGlass'],
      ['no reason', { reason: '' }, policy, '--reason'],
      ['an empty reason', { reason: ' \n' }, policy, '--reason'],
    ])('is refused: %s', (_, request, rules, text) => {
      const refusals = refusalsOf(at(request, rules));
      expect(refusals).toMatchObject([{ code: 'NotAllowed', message: expect.stringContaining(text) }]);
    });

    test('without a request for it closed gates stay closed', () => {
      expect(refusalsOf(at({ breakGlass: false }))).toMatchObject([{ code: 'GateUnmet' }]);
    });

    test('opens gates, and nothing else', () => {
      const broken = { ...gated(false), problem: 'no YAML', nestedWith: 'q', mainHead: undefined };
      const codes = refusalsOf(at({}, policy, broken)).map(({ code }) => code);
      expect(codes.sort()).toEqual(['Conflict', 'NestedPackage', 'Unreadable']);
      const own = { ...gated(false), proposedBy: 'bob' };
      expect(refusalsOf(at({}, { ...policy, forbidSelfApproval: true }, own))).toMatchObject([{ code: 'NotAllowed' }]);
      const pushed = { ...gated(false), contributors: [contributor('push')] };
      expect(at({}, { ...policy, forbidSelfApproval: true }, pushed)).toMatchObject({
        ...{ plan: [], approvals: { given: 1, needed: 2 } },
      });
    });

    test('is no proposal, and leaves no trace where there is nothing to pass', () => {
      const draft = stateIn('Draft', gated(false));
      const request = {
        action: 'propose',
        actor: { name: 'bob' },
        face: 'cli',
        breakGlass: true,
        reason: 'x',
      } as const;
      expect(refusalsOf(decide(draft, request, { ...DEFAULT_POLICY, ...policy }, NOW))).toMatchObject([
        { code: 'GateUnmet' },
      ]);
      const open = at({}, policy, gated(true));
      expect(open).toMatchObject({ allowed: true, bypassed: [] });
      expect(open).not.toHaveProperty('brokeGlass');
      const warned = at({}, { ...policy, enforcement: 'warn' });
      expect(warned).toMatchObject({ allowed: true, bypassed: [{ code: 'GateUnmet' }] });
      expect(warned).not.toHaveProperty('brokeGlass');
    });
  });

  test('a gate that was required at the proposal stays required', () => {
    const proposed = gated(false, { gates: [], proposed: ['G'] });
    expect(refusalsOf(ask(stateIn('Proposed', proposed), 'approve'))).toMatchObject([
      { code: 'GateUnmet', gate: { type: 'G', requiredBy: ['proposal'] } },
    ]);
    expect(ask(stateIn('Proposed', gated(true, { gates: [], proposed: ['G'] })), 'approve').allowed).toBe(true);
  });

  test('an expired verdict is reported as stale, with the time of the decision', () => {
    const policy = { validFor: [{ conditionType: 'G', milliseconds: 1000 }] };
    const later = '2026-01-01T00:00:01Z';
    const request = { action: 'approve', actor: { name: 'bob' }, face: 'api' } as const;
    const decision = decide(stateIn('Proposed', gated(true)), request, { ...DEFAULT_POLICY, ...policy }, later);
    expect(refusalsOf(decision)).toMatchObject([
      { code: 'VerdictStale', gate: { state: 'Expired' }, message: expect.stringContaining(`closed at ${later}`) },
    ]);
    expect(decide(stateIn('Proposed', gated(true)), request, { ...DEFAULT_POLICY, ...policy }, NOW).allowed).toBe(true);
  });

  test('a mark that was removed already cannot be undone', () => {
    expect(
      refusalsOf(ask(stateIn('DeletionProposed', { deletionProposed: undefined }), 'undo-deletion'))[0]?.code,
    ).toBe('Conflict');
  });

  test('more revisions than a call takes arguments, and numbers that are none', () => {
    const many = Array.from({ length: 300_000 }, (_, index) => ({
      name: `${index}`,
      lifecycle: 'Published' as const,
      revision: index,
    }));
    expect(ask(stateIn('Proposed', { siblings: many }), 'approve')).toMatchObject({ next: { revision: 300_000 } });
    const odd = [Number.NaN, Number.POSITIVE_INFINITY, 1.5, -3, 4].map((revision) => ({
      name: 'x',
      lifecycle: 'Published' as const,
      revision,
    }));
    expect(ask(stateIn('Proposed', { siblings: odd }), 'approve')).toMatchObject({ next: { revision: 5 } });
  });

  test('after the last number there is none', () => {
    const siblings = [{ name: 'x', lifecycle: 'Published' as const, revision: 999_999_999 }];
    const [refusal] = refusalsOf(ask(stateIn('Proposed', { siblings }), 'approve'));
    expect(refusal?.code).toBe('TagConflict');
    expect(refusal?.message).toContain('refs/tags/p/v999999999');
  });
});
