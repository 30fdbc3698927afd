import { describe, expect, test } from 'vitest';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import type { PackageInputs } from '../content/inputs.ts';
import { emptyRecord, type RevisionRecord, type Verdict, verdictOf } from '../record/record.ts';
import {
  type IssuedCondition,
  issueVerdict,
  PUSH_ACTOR,
  recordAfterPush,
  syncVerdicts,
  withdrawVerdict,
} from './verdict.ts';

const CLAIM = 'ipam.resource.nephio.org/v1alpha1.IPClaim.n3';
const ann: RequestContext = { actor: { name: 'ann', groups: ['net'] }, face: 'cli' };
const T1 = '2026-01-01T00:00:00Z';
const T2 = '2026-01-02T00:00:00Z';
const T3 = '2026-01-03T00:00:00Z';

function inputs(content: string, object?: string): PackageInputs {
  return { content, object: (type) => (type === CLAIM ? object : undefined), file: () => undefined };
}

function condition(status: 'True' | 'False' | 'Unknown', message?: string, type = 'Checked'): IssuedCondition {
  return { type, status, ...(message === undefined ? {} : { message }) };
}

const given = issueVerdict(emptyRecord('c'), condition('True'), inputs('c1'), ann, T1);

describe('giveVerdict', () => {
  test('keeps who gave what for which content', () => {
    expect(given.verdicts).toEqual([
      {
        type: 'Checked',
        status: 'True',
        inputs: { content: 'c1' },
        by: 'ann',
        groups: ['net'],
        face: 'cli',
        at: T1,
        since: T1,
      },
    ]);
  });

  test('binds a claim to its object', () => {
    const record = issueVerdict(emptyRecord('c'), condition('True', 'ok', CLAIM), inputs('c1', 'o1'), ann, T1);
    expect(verdictOf(record, CLAIM)?.inputs).toEqual({ [`object:${CLAIM}`]: 'o1' });
  });

  test('the same again by the same changes nothing, not even the object', () => {
    expect(issueVerdict(given, condition('True'), inputs('c1'), ann, T2)).toBe(given);
    expect(issueVerdict(given, { ...condition('True'), message: '' }, inputs('c1'), ann, T2)).toBe(given);
  });

  test('the same by another giver is a new verdict, so that one who may can affirm what one who may not has given', () => {
    const pushed = issueVerdict(
      emptyRecord('c'),
      condition('True'),
      inputs('c1'),
      { actor: { name: 'push' }, face: 'git' },
      T1,
    );
    expect(verdictOf(issueVerdict(pushed, condition('True'), inputs('c1'), ann, T2), 'Checked')).toMatchObject({
      by: 'ann',
      face: 'cli',
      at: T2,
      since: T1,
    });
    const promoted: RequestContext = { actor: { name: 'ann', groups: ['net', 'security'] }, face: 'cli' };
    expect(verdictOf(issueVerdict(given, condition('True'), inputs('c1'), promoted, T2), 'Checked')?.groups).toContain(
      'security',
    );
  });

  test('for other content it is bound again, and `since` stays while the status does', () => {
    const again = issueVerdict(given, condition('True'), inputs('c2'), ann, T2);
    expect(verdictOf(again, 'Checked')).toMatchObject({ inputs: { content: 'c2' }, at: T2, since: T1 });
    const failed = issueVerdict(again, condition('False', 'no'), inputs('c2'), ann, T3);
    expect(verdictOf(failed, 'Checked')).toMatchObject({ status: 'False', message: 'no', at: T3, since: T3 });
    expect(failed.verdicts).toHaveLength(1);
  });

  test('a verdict for no input is one for the content, else it could never become stale', () => {
    const record = issueVerdict(emptyRecord('c'), { ...condition('True'), inputs: [] }, inputs('c1'), ann, T1);
    expect(verdictOf(record, 'Checked')?.inputs).toEqual({ content: 'c1' });
  });

  test('refuses an input that does not exist', () => {
    expect(() => issueVerdict(given, { ...condition('True'), inputs: ['commit'] }, inputs('c1'), ann, T1)).toThrow(
      'commit',
    );
  });

  test('sorts by type and takes names of properties as types', () => {
    let record = emptyRecord('c');
    for (const type of ['b', '__proto__', 'constructor', 'a']) {
      record = issueVerdict(record, condition('True', undefined, type), inputs('c1'), ann, T1);
    }
    expect(record.verdicts.map((verdict) => verdict.type)).toEqual(['__proto__', 'a', 'b', 'constructor']);
  });
});

test('withdrawVerdict removes one, and returns the very record if there is none', () => {
  expect(withdrawVerdict(given, 'Checked').verdicts).toEqual([]);
  expect(withdrawVerdict(given, 'Other')).toBe(given);
});

describe('recordAfterPush', () => {
  const pushed = { commit: 'd', madeBySluice: false, time: T2 };
  const conditions = (...list: IssuedCondition[]) => new Map(list.map((item) => [item.type, item]));

  test('is the record itself at its own commit', () => {
    const tip = { commit: 'c', madeBySluice: false, time: T2 };
    expect(recordAfterPush(given, tip, conditions(condition('False')), inputs('c9'))).toBe(given);
  });

  test('conditions that a push changed count as issued by it, for its content', () => {
    const record = recordAfterPush(given, pushed, conditions(condition('True', 'I say so')), inputs('c2'));
    expect(record.commit).toBe('d');
    expect(verdictOf(record, 'Checked')).toMatchObject({
      by: PUSH_ACTOR,
      face: 'git',
      inputs: { content: 'c2' },
      at: T2,
      since: T1,
    });
    expect(verdictOf(record, 'Checked')?.groups).toBeUndefined();
  });

  test('what a push left alone keeps its verdict, which may be stale now', () => {
    expect(verdictOf(recordAfterPush(given, pushed, conditions(condition('True')), inputs('c2')), 'Checked')).toEqual(
      verdictOf(given, 'Checked'),
    );
  });

  test('what a push removed is withdrawn', () => {
    expect(recordAfterPush(given, pushed, conditions(), inputs('c2')).verdicts).toEqual([]);
  });

  test('a branch with pushes only has the verdicts of the push', () => {
    const record = recordAfterPush(
      undefined,
      pushed,
      conditions(condition('True'), condition('False', 'x', 'Other')),
      inputs('c2'),
    );
    expect(record.verdicts.map(({ type, by, status }) => [type, by, status])).toEqual([
      ['Checked', PUSH_ACTOR, 'True'],
      ['Other', PUSH_ACTOR, 'False'],
    ]);
  });

  test('a lost record is not made up', () => {
    const tip = { commit: 'd', madeBySluice: true, time: T2 };
    expect(recordAfterPush(undefined, tip, conditions(condition('True')), inputs('c2'))).toEqual(emptyRecord('d'));
  });

  test('keeps everything else of the record', () => {
    const rich: RevisionRecord = {
      ...given,
      labels: { a: 'b' },
      steps: [{ action: 'propose', by: 'ann', face: 'cli', at: T1 }],
    };
    expect(recordAfterPush(rich, pushed, conditions(), inputs('c2'))).toEqual({ ...rich, commit: 'd', verdicts: [] });
  });
});

test('syncVerdicts gives what differs to the writer and leaves the rest', () => {
  const bob: RequestContext = { actor: { name: 'bob' }, face: 'api' };
  const two = issueVerdict(given, condition('False', 'x', 'Other'), inputs('c1'), ann, T1);
  const synced = syncVerdicts(
    two,
    {
      conditions: new Map([
        ['Checked', condition('True')],
        ['New', condition('True', undefined, 'New')],
        ['Old', condition('True', undefined, 'Old')],
      ]),
      known: new Map([['Old', condition('True', undefined, 'Old')]]),
    },
    inputs('c2'),
    bob,
    T2,
  );
  expect(synced.verdicts.map(({ type, by, inputs: bound }) => [type, by, bound.content])).toEqual([
    ['Checked', 'ann', 'c1'],
    ['New', 'bob', 'c2'],
  ]);
});

test('external facts are inputs of a condition, and other facts are another verdict', () => {
  const fact = { source: 'https://git.example.com', id: 'review/7', value: 'approved', time: '2026-01-01T00:00:00Z' };
  const given = { type: 'Reviewed', status: 'True', external: [fact] } as const;
  const context = { actor: { name: 'anna' }, face: 'api' } as const;
  const inputs = { content: 'c', object: () => undefined, file: () => undefined };
  const first = issueVerdict(emptyRecord('1'), given, inputs, context, '2026-01-01T00:00:01Z');
  expect(first.verdicts[0]).toMatchObject({ inputs: { content: 'c' }, external: [fact] });
  expect(issueVerdict(first, given, inputs, context, '2026-01-01T00:00:02Z')).toBe(first);
  const later = { ...given, external: [{ ...fact, time: '2026-01-01T00:00:03Z' }] };
  expect(issueVerdict(first, later, inputs, context, '2026-01-01T00:00:04Z')).not.toBe(first);
});

test('bringing a record in line with a Kptfile is not quadratic in conditions and verdicts', () => {
  let looks = 0;
  /** A verdict that counts how often it is compared. */
  const counted = (index: number): Verdict => ({
    ...(given.verdicts[0] as Verdict),
    get type() {
      looks += 1;
      return `c${index}`;
    },
  });
  const looksFor = (count: number): number => {
    const record = { ...emptyRecord('c'), verdicts: Array.from({ length: count }, (_, index) => counted(index)) };
    // Half of them are withdrawn, the others are given again.
    const types = Array.from({ length: count }, (_, index) => `c${index + count / 2}`);
    const conditions = new Map(types.map((type) => [type, condition('False', undefined, type)]));
    looks = 0;
    expect(syncVerdicts(record, { conditions }, inputs('c1'), ann, T2).verdicts).toHaveLength(count);
    return looks;
  };
  expect(looksFor(8000) / looksFor(1000)).toBeLessThan(2 * 8);
});
