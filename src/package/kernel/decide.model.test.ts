import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, type EffectivePolicy } from '../policy.ts';
import { decide } from './decide.ts';
import { Driver, type Step } from './testing/driver.ts';
import { PACKAGE } from './testing/world.ts';
import {
  ACTIONS,
  type Action,
  type Decision,
  LIFECYCLES,
  type Lifecycle,
  type RevisionState,
  type TransitionRequest,
} from './types.ts';

const SEQUENCES = 100_000;
const NOW = '2026-01-01T00:00:00Z';
// Without bias: small numbers are no simpler steps than large ones, and would all be the same few.
const seed = fc.noBias(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));

/** Plain comparisons: matchers cost more than everything else here together. */
function demand(holds: boolean, what: string, details: unknown = ''): asserts holds {
  if (!holds) throw new Error(`${what} ${JSON.stringify(details)}`);
}

function checkRefs(driver: Driver): void {
  const expected = driver.model.refs();
  let packages = 0;
  for (const [ref, oid] of driver.world.refs) {
    if (ref.startsWith('refs/sluice/')) continue;
    packages += 1;
    demand(expected.get(ref) === oid, 'refs differ', [ref, oid, expected.get(ref)]);
  }
  demand(packages === expected.size, 'refs are missing', [[...driver.world.refs.keys()], [...expected.keys()]]);
}

/** Each revision stands at one place: no draft beside its proposed branch, no branch beside the tag that it became. */
function checkPlaces(driver: Driver): void {
  const names = driver.world.list().map(({ workspace }) => workspace);
  demand(new Set(names).size === names.length, 'a revision has two places', names);
}

function checkRequest(
  driver: Driver,
  request: NonNullable<Step['request']>,
  before: ReadonlyMap<string, string>,
): void {
  const { decision, against, action, target } = request;
  demand(decision.allowed === (against.size === 0), 'the model disagrees', {
    action,
    target,
    against: [...against],
    decision,
  });
  if (!decision.allowed) {
    demand(
      decision.refusals.length > 0 && decision.refusals.every(({ message }) => message !== ''),
      'refused without a reason',
    );
    const codes = new Set(decision.refusals.map(({ code }) => code));
    demand(codes.size === against.size && [...codes].every((code) => against.has(code)), 'other reasons', [
      [...codes],
      [...against],
    ]);
    demand(sameRefs(before, driver.world.refs), 'a refused request changed refs');
    return;
  }
  demand(decision.plan.length > 0, 'an allowed request does nothing', action);
  const enforced = driver.world.policy.enforcement === 'enforce';
  demand(!enforced || decision.bypassed.length === 0, 'gates bypassed although enforced');
  const tags = (refs: ReadonlyMap<string, string>) => [...refs.keys()].filter((ref) => ref.startsWith('refs/tags/'));
  const added = tags(driver.world.refs).filter((ref) => !before.has(ref));
  if (action !== 'approve') {
    demand(added.length === 0, 'a tag without approval', added);
    return;
  }
  demand(
    added.length === 1 && added[0] === `refs/tags/dir/${PACKAGE}/v${request.nextNumber}`,
    'not the next number',
    added,
  );
  demand(!enforced || request.open, 'published with a closed gate', target);
  demand(
    enforced || request.open === (decision.bypassed.length === 0),
    'bypassed gates are not told',
    decision.bypassed,
  );
}

function sameRefs(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return a.size === b.size && [...a].every(([ref, oid]) => b.get(ref) === oid);
}

describe('the kernel against its model', () => {
  const seen = {
    sequences: 0,
    requests: 0,
    bypassed: 0,
    codes: new Map<string, number>(),
    done: new Map<string, number>(),
  };

  function count(decision: Decision, action: string): void {
    seen.requests += 1;
    if (decision.allowed) {
      seen.done.set(action, (seen.done.get(action) ?? 0) + 1);
      if (decision.bypassed.length > 0) seen.bypassed += 1;
    } else for (const { code } of decision.refusals) seen.codes.set(code, (seen.codes.get(code) ?? 0) + 1);
  }

  test(`${SEQUENCES} random sequences of requests, edits and pushes`, { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(seed, fc.array(seed, { minLength: 4, maxLength: 20, size: 'max' }), (start, steps) => {
        seen.sequences += 1;
        const driver = new Driver(start, true);
        for (const next of steps) {
          const before = new Map(driver.world.refs);
          const { request } = driver.step(next);
          checkRefs(driver);
          checkPlaces(driver);
          if (request === undefined) continue;
          checkRequest(driver, request, before);
          count(request.decision, request.action);
        }
      }),
      { numRuns: SEQUENCES },
    );
    expect(seen.sequences).toBeGreaterThanOrEqual(SEQUENCES);
  });

  test('the sequences came everywhere', () => {
    expect([...seen.done.keys()].sort()).toEqual([...ACTIONS].sort());
    expect([...seen.codes.keys()].sort()).toEqual([
      'Conflict',
      'GateUnmet',
      'InUse',
      'NestedPackage',
      'NotAllowed',
      'Unreadable',
      'VerdictStale',
      'WrongState',
    ]);
    for (const times of [...seen.done.values(), ...seen.codes.values(), seen.bypassed])
      expect(times).toBeGreaterThan(300);
  });
});

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
      { numRuns: 5000 },
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
