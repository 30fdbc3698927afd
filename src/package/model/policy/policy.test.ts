import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, type EffectivePolicy, matchesPattern, refuseIssuer } from './policy.ts';

const strict: EffectivePolicy = {
  ...DEFAULT_POLICY,
  pushDenied: ['ipam.*', 'Exact'],
  givers: [
    { conditionType: 'security.*', actors: ['ann', 'group:security'], policy: 'security' },
    { conditionType: 'security.audit', actors: ['ann', 'bob'], policy: 'audit' },
  ],
};

describe('matchesPattern', () => {
  test.each([
    ['a.b', 'a.b', true],
    ['a.b', 'a.bc', false],
    ['a.*', 'a.bc', true],
    ['a.*', 'a', false],
    ['*', '', true],
    ['a*b', 'axb', false],
    ['(a+)+$', '(a+)+$', true],
  ])('%s on %s', (pattern, value, matches) => {
    expect(matchesPattern(pattern, value)).toBe(matches);
  });
});

describe('refuseGiver', () => {
  test('permits any actor to issue a condition without a rule', () => {
    expect(refuseIssuer(DEFAULT_POLICY, 'x', { name: 'push' }, 'git')).toBeUndefined();
    expect(refuseIssuer(strict, 'Rendered', { name: 'carl' }, 'cli')).toBeUndefined();
  });

  test('rejects types that a policy denies to pushes, for pushes only', () => {
    expect(refuseIssuer(strict, 'ipam.claim', { name: 'ann' }, 'git')).toContain('plain push');
    expect(refuseIssuer(strict, 'Exact', { name: 'ann' }, 'git')).toContain('plain push');
    expect(refuseIssuer(strict, 'Exactly', { name: 'ann' }, 'git')).toBeUndefined();
    expect(refuseIssuer(strict, 'ipam.claim', { name: 'ann' }, 'controller')).toBeUndefined();
  });

  test('evaluates every rule that names the type', () => {
    expect(refuseIssuer(strict, 'security.scan', { name: 'ann' }, 'cli')).toBeUndefined();
    expect(refuseIssuer(strict, 'security.scan', { name: 'bob' }, 'cli')).toContain('policy security');
    expect(refuseIssuer(strict, 'security.audit', { name: 'ann' }, 'cli')).toBeUndefined();
    expect(refuseIssuer(strict, 'security.audit', { name: 'eve', groups: ['security'] }, 'cli')).toContain(
      'policy audit',
    );
    expect(refuseIssuer(strict, 'security.audit', { name: 'bob' }, 'cli')).toContain('policy security');
  });

  test('distinguishes a group from a name', () => {
    expect(refuseIssuer(strict, 'security.scan', { name: 'eve', groups: ['security'] }, 'api')).toBeUndefined();
    expect(refuseIssuer(strict, 'security.scan', { name: 'group:security' }, 'api')).toBeDefined();
    expect(
      refuseIssuer(strict, 'security.scan', { name: 'eve', groups: ['group:security', 'ann'] }, 'api'),
    ).toBeDefined();
  });
});
