import { describe, expect, test } from 'vitest';
import type { Condition } from '../../../../kptfile-schema/index.ts';
import type { PackageInputs } from '../content/inputs.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../policy/policy.ts';
import { emptyRecord, type Verdict } from '../record/record.ts';
import { evaluateGates, type Gate, type GateFacts, type GateState } from './gates.ts';

const T = '2026-01-01T00:00:00Z';
const HOUR = 3_600_000;

function inputs(content: string): PackageInputs {
  return { content, object: () => 'o1', file: () => 'f1' };
}

function verdict(overrides: Partial<Verdict> = {}): Verdict {
  return {
    type: 'G',
    status: 'True',
    inputs: { content: 'c1' },
    by: 'ann',
    face: 'cli',
    at: T,
    since: T,
    ...overrides,
  };
}

function facts(
  condition: Partial<Condition> | undefined,
  verdicts: readonly Verdict[] | undefined,
  content = 'c1',
): GateFacts {
  return {
    gates: ['G'],
    conditions: new Map(condition === undefined ? [] : [['G', { type: 'G', status: 'True', ...condition }]]),
    record: verdicts === undefined ? undefined : { ...emptyRecord('c'), verdicts: [...verdicts] },
    inputs: inputs(content),
  };
}

function gateOf(input: GateFacts, policy: Partial<EffectivePolicy> = {}, now = T): Gate | undefined {
  return evaluateGates(input, { ...DEFAULT_POLICY, ...policy }, now)[0];
}

test('the condition about reviews counts only if Sluice has set it, also without a policy', () => {
  const type = 'sluice.dev/Reviewed';
  const stateBy = (by: string) => {
    const input = {
      ...facts(undefined, [verdict({ type, by })]),
      ...{ gates: [type], conditions: new Map([[type, { type, status: 'True' as const }]]) },
    };
    return gateOf(input)?.state;
  };
  expect(['ann', 'push', 'controller:pull-request'].map(stateBy)).toEqual(['NotAllowed', 'NotAllowed', 'Open']);
});

describe('the state of a gate', () => {
  const onlyBob = { givers: [{ conditionType: 'G', actors: ['bob'], policy: 'p' }] };

  test.each<[string, GateFacts, Partial<EffectivePolicy>, GateState]>([
    ['True for the content at hand', facts({}, [verdict()]), {}, 'Open'],
    ['no condition', facts(undefined, [verdict()]), {}, 'Missing'],
    ['False', facts({ status: 'False' }, [verdict({ status: 'False' })]), {}, 'NotTrue'],
    ['False, with a verdict that says True', facts({ status: 'False' }, [verdict()]), {}, 'NotTrue'],
    ['Unknown', facts({ status: 'Unknown' }, [verdict({ status: 'Unknown' })]), {}, 'NotTrue'],
    ['no record', facts({}, undefined), {}, 'Unproven'],
    ['no verdict', facts({}, []), {}, 'Unproven'],
    ['a verdict of another type', facts({}, [verdict({ type: 'H' })]), {}, 'Unproven'],
    ['a verdict that says False', facts({}, [verdict({ status: 'False' })]), {}, 'Unproven'],
    ['a verdict for nothing', facts({}, [verdict({ inputs: {} })]), {}, 'Unproven'],
    ['content changed', facts({}, [verdict()], 'c2'), {}, 'Stale'],
    ['an unknown input', facts({}, [verdict({ inputs: { content: 'c1', 'x:y': 'unknown' } })]), {}, 'Stale'],
    ['one of two inputs changed', facts({}, [verdict({ inputs: { content: 'c1', 'file:a': 'f0' } })]), {}, 'Stale'],
    ['a giver whom the policy does not let', facts({}, [verdict()]), onlyBob, 'NotAllowed'],
    ['such a giver, for other content', facts({}, [verdict()], 'c2'), onlyBob, 'NotAllowed'],
    ['a giver whom the policy lets', facts({}, [verdict({ by: 'bob' })]), onlyBob, 'Open'],
    ['a push that may', facts({}, [verdict({ face: 'git' })]), {}, 'Open'],
    ['a push that may not', facts({}, [verdict({ face: 'git' })]), { pushDenied: ['*'] }, 'NotAllowed'],
    [
      'the groups that the giver had',
      facts({}, [verdict({ groups: ['g'] })]),
      { givers: [{ conditionType: '*', actors: ['group:g'], policy: 'p' }] },
      'Open',
    ],
  ])('%s', (_, input, policy, state) => {
    expect(gateOf(input, policy)?.state).toBe(state);
  });

  test('is explained in one sentence', () => {
    expect(
      gateOf(facts({ status: 'False', reason: 'PoolExhausted', message: 'no address left' }, []))?.explanation,
    ).toBe('the condition is False (PoolExhausted: no address left)');
    expect(
      gateOf(facts({}, [verdict({ inputs: { content: 'c0', 'file:a.yaml': 'f0', 'object:x': 'o0' } })]))?.explanation,
    ).toBe(`issued by ann at ${T}, but the content of the package and the file a.yaml and the object x changed since`);
    expect(gateOf(facts({}, [verdict()], 'c2'))?.changed).toEqual(['content']);
  });

  test('has the time of its verdict as long as that counts: when content changed is not recorded', () => {
    const earlier = verdict({ since: '2020-01-01T00:00:00Z' });
    expect(gateOf(facts({}, [earlier]))?.since).toBe('2020-01-01T00:00:00Z');
    expect(gateOf(facts({ status: 'False' }, [{ ...earlier, status: 'False' }]))?.since).toBe('2020-01-01T00:00:00Z');
    expect(gateOf(facts({}, [earlier], 'c2'))?.since).toBeUndefined();
  });
});

describe('a verdict that may expire', () => {
  const hour = { validFor: [{ conditionType: 'G', milliseconds: HOUR }] };
  const later = (milliseconds: number) => new Date(Date.parse(T) + milliseconds).toISOString();

  test.each<[string, Partial<EffectivePolicy>, string, GateState]>([
    ['at once', hour, T, 'Open'],
    ['a moment before the end', hour, later(HOUR - 1), 'Open'],
    ['at the end', hour, later(HOUR), 'Expired'],
    ['long after', hour, later(1000 * HOUR), 'Expired'],
    ['without a limit', {}, later(1_000_000 * HOUR), 'Open'],
    ['a limit on another type', { validFor: [{ conditionType: 'H', milliseconds: 1 }] }, later(HOUR), 'Open'],
    ['a limit on types that begin alike', { validFor: [{ conditionType: '*', milliseconds: 1 }] }, later(1), 'Expired'],
    [
      'the shortest of several',
      {
        validFor: [
          ...hour.validFor,
          { conditionType: 'G', milliseconds: 10 },
          { conditionType: '*', milliseconds: 20 },
        ],
      },
      later(10),
      'Expired',
    ],
    ['a clock that was set back', hour, '2025-01-01T00:00:00Z', 'Open'],
  ])('%s', (_, policy, now, state) => {
    expect(gateOf(facts({}, [verdict()]), policy, now)?.state).toBe(state);
  });

  test('counts from the time it was last issued, and the explanation names its end', () => {
    const affirmed = verdict({ since: '2020-01-01T00:00:00Z' });
    expect(gateOf(facts({}, [affirmed]), hour, T)?.state).toBe('Open');
    expect(gateOf(facts({}, [affirmed]), hour, later(2 * HOUR))).toMatchObject({
      explanation: 'issued by ann at 2026-01-01T00:00:00Z, which counted until 2026-01-01T01:00:00Z',
      since: '2026-01-01T01:00:00Z',
    });
  });

  test('a verdict whose time cannot be read has expired, where verdicts may expire', () => {
    const odd = facts({}, [verdict({ at: 'yesterday' })]);
    expect(gateOf(odd, hour, T)?.state).toBe('Expired');
    expect(gateOf(odd, {}, T)?.state).toBe('Open');
  });

  test('other problems are reported first', () => {
    const backlog = later(HOUR);
    expect(gateOf(facts({}, [verdict()], 'c2'), hour, backlog)?.state).toBe('Stale');
    expect(gateOf(facts({}, undefined), hour, backlog)?.state).toBe('Unproven');
    expect(gateOf(facts({ status: 'False' }, [verdict()]), hour, backlog)?.state).toBe('NotTrue');
  });
});

describe('which gates there are', () => {
  const none: GateFacts = { gates: [], conditions: new Map(), record: undefined, inputs: inputs('c1') };
  const required = (conditionType: string, approveOnly: boolean, policy: string) => ({
    conditionType,
    approveOnly,
    policy,
  });

  test('the Kptfile and policies add up, each type once', () => {
    const gates = evaluateGates(
      { ...none, gates: ['A', 'B', 'A'] },
      {
        ...DEFAULT_POLICY,
        requiredGates: [required('B', false, 'p'), required('C', true, 'p'), required('C', true, 'q')],
      },
      T,
    );
    expect(gates.map(({ type, requiredBy, approveOnly }) => [type, requiredBy, approveOnly])).toEqual([
      ['A', ['Kptfile'], false],
      ['B', ['Kptfile', 'policy p'], false],
      ['C', ['policy p', 'policy q'], true],
    ]);
  });

  test.each([
    [['G'], [required('G', true, 'p')], true],
    [['G'], [required('G', true, 'p'), required('G', false, 'q')], false],
    [['G'], [required('G', false, 'p'), required('G', true, 'q')], false],
    [[], [required('G', true, 'p'), required('G', false, 'q')], false],
    [[], [required('G', false, 'p'), required('G', true, 'q')], false],
    [[], [required('G', true, 'p'), required('G', true, 'q')], true],
  ])('a type is approve-only if every policy that names it says so: %j %j', (gates, requiredGates, approveOnly) => {
    const policy = { ...DEFAULT_POLICY, requiredGates };
    expect(evaluateGates({ ...none, gates }, policy, T)[0]?.approveOnly).toBe(approveOnly);
  });

  test('those required at the proposal stay required, independent of later Kptfiles and policies', () => {
    const gates = evaluateGates(
      { ...none, gates: ['A'], proposed: ['A', 'B', 'C', 'B'] },
      { ...DEFAULT_POLICY, requiredGates: [required('C', true, 'p')] },
      T,
    );
    expect(gates.map(({ type, requiredBy, approveOnly, state }) => [type, requiredBy, approveOnly, state])).toEqual([
      ['A', ['Kptfile'], false, 'Missing'],
      ['C', ['policy p'], true, 'Missing'],
      ['B', ['proposal'], false, 'Missing'],
    ]);
  });

  test('names of properties are types like others', () => {
    const gates = evaluateGates({ ...none, gates: ['__proto__', 'constructor'] }, DEFAULT_POLICY, T);
    expect(gates.map((gate) => [gate.type, gate.state])).toEqual([
      ['__proto__', 'Missing'],
      ['constructor', 'Missing'],
    ]);
  });
});
