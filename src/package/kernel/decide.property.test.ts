import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../policy.ts';
import { decide } from './decide.ts';
import {
  ACTIONS,
  type Action,
  type Decision,
  LIFECYCLES,
  type Lifecycle,
  type RevisionState,
  type TransitionRequest,
} from './types.ts';

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
    }),
    proposedBy: maybe,
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
    }),
    mainHead: maybe,
    deletionProposed: maybe,
  });
  const request = fc
    .record({ action, actor: fc.record({ name: text, groups: fc.array(text, { maxLength: 2 }) }), face: text })
    .chain((fixed) =>
      maybe.map((expectedCommit) => ({ ...fixed, ...(expectedCommit === undefined ? {} : { expectedCommit }) })),
    );
  const policy = fc.record({
    enforcement: fc.constantFrom('enforce', 'warn', 'off', ''),
    requiredGates: fc.array(fc.record({ conditionType: text, approveOnly: fc.boolean(), policy: text }), {
      maxLength: 3,
    }),
    givers: fc.array(fc.record({ conditionType: text, actors: fc.array(text, { maxLength: 2 }), policy: text }), {
      maxLength: 2,
    }),
    pushDenied: fc.array(text, { maxLength: 2 }),
    forbidSelfApproval: fc.boolean(),
  });

  test('it answers every state and request, the same each time', () => {
    fc.assert(
      fc.property(state, request, policy, (oddState, oddRequest, oddPolicy) => {
        const judge = (): Decision =>
          decide(
            oddState as unknown as RevisionState,
            oddRequest as unknown as TransitionRequest,
            { ...DEFAULT_POLICY, ...oddPolicy } as EffectivePolicy,
            NOW,
          );
        const decision = judge();
        expect(judge()).toEqual(decision);
        if (decision.allowed) {
          expect(decision.plan.length).toBeGreaterThan(0);
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
      },
      mainHead: 'm1',
      deletionProposed: lifecycle === 'DeletionProposed' ? 'c1' : undefined,
      ...overrides,
    };
  }
  const ask = (state: RevisionState, action: Action, policy: Partial<EffectivePolicy> = {}, actor = 'bob') =>
    decide(state, { action, actor: { name: actor }, face: 'api' }, { ...DEFAULT_POLICY, ...policy }, NOW);
  const refusalsOf = (decision: Decision) => (decision.allowed ? [] : decision.refusals);

  test('approval is one plan: main and the tag on one new commit, the branch gone', () => {
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

  test('a closed gate is told with its name, since when and what the condition says', () => {
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

  test('where nobody may approve his own, an unknown proposer is nobody else', () => {
    const forbid = { forbidSelfApproval: true };
    expect(ask(stateIn('Proposed'), 'approve', forbid).allowed).toBe(true);
    expect(refusalsOf(ask(stateIn('Proposed'), 'approve', forbid, 'ann'))[0]?.code).toBe('NotAllowed');
    for (const proposedBy of [undefined, 'push']) {
      expect(refusalsOf(ask(stateIn('Proposed', { proposedBy }), 'approve', forbid))[0]?.code).toBe('NotAllowed');
      expect(ask(stateIn('Proposed', { proposedBy }), 'approve').allowed).toBe(true);
    }
  });

  test('a mark that is gone already cannot be undone', () => {
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
    expect(refusal?.code).toBe('Conflict');
    expect(refusal?.message).toContain('refs/tags/p/v999999999');
  });
});
