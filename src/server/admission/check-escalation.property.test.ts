import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import { allows } from '../authorization/allows.ts';
import { missingRules } from '../authorization/missing-rules.ts';
import { FULL_AUTHORITY } from '../authorization/rbac-authorizer.ts';
import type { ClusterRole, PolicyRule, RbacKind } from '../authorization/rbac-objects.ts';
import { permission } from '../authorization/require-allowed.ts';
import { authorizerOf, binding, clusterRole, role, user } from '../authorization/testing.ts';
import { checkEscalation, isRbacKind, type RbacWrite } from './check-escalation.ts';

const READ: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] };
const SECRETS: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['secrets', 'configmaps'] };
const ANNA = { kind: 'User', name: 'anna' };
const GROUP = 'rbac.authorization.k8s.io';
const anna = user('anna', 'ops', 'system:authenticated');

const { authorizer } = authorizerOf(
  clusterRole('reader', [READ]),
  clusterRole('secrets', [SECRETS]),
  clusterRole('escalates', [{ verbs: ['escalate'], apiGroups: [GROUP], resources: ['roles'], resourceNames: ['big'] }]),
  clusterRole('binds', [
    { verbs: ['bind'], apiGroups: [GROUP], resources: ['clusterroles'], resourceNames: ['secrets'] },
  ]),
  clusterRole('all', [...FULL_AUTHORITY]),
  binding('a', 'readers', 'ClusterRole/reader', ANNA),
  binding('b', 'escalators', 'ClusterRole/escalates', ANNA),
  binding('b', 'binders', 'ClusterRole/binds', ANNA),
  binding('', 'full', 'ClusterRole/all', { kind: 'User', name: 'full' }),
);

function check(object: RbacWrite['object'], old?: RbacWrite['object'], who = anna): void {
  checkEscalation({ user: who, kind: object.kind as RbacKind, object, old }, authorizer);
}

test('a role may hold what its writer holds there, whole or in parts', () => {
  check(role('a', 'fine', READ, { ...READ, verbs: ['get'] }, { ...READ, resourceNames: ['one'] }));
  check(role('a', 'empty'));
  expect(() => check(role('b', 'elsewhere', READ))).toThrow();
  expect(() => check(clusterRole('everywhere', [READ]))).toThrow();
});

test('missing rules are listed in the words of Kubernetes', () => {
  const write = () => check(role('a', 'greedy', SECRETS, { verbs: ['*'], nonResourceURLs: ['/metrics'] }));
  expect(write).toThrow(
    expect.objectContaining({
      code: 'Refused',
      message: [
        `roles.rbac.authorization.k8s.io "greedy" is forbidden: user "anna" (groups=["ops" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:`,
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["*"]}',
      ].join('\n'),
    }),
  );
});

test('the verb escalate on that role lifts the rule, in that namespace only', () => {
  check(role('b', 'big', SECRETS));
  expect(() => check(role('b', 'bigger', SECRETS))).toThrow();
  expect(() => check(role('a', 'big', SECRETS))).toThrow();
});

test('system:masters may write everything', () => {
  check(clusterRole('any', [...FULL_AUTHORITY]), undefined, user('root', 'system:masters'));
});

test('who holds full authority by a binding may write everything, gathering roles too', () => {
  const gathering: ClusterRole = {
    ...clusterRole('gathering', []),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
  };
  check(gathering, undefined, user('full'));
  expect(() => check(gathering)).toThrow('must have cluster-admin privileges to use the aggregationRule');
  expect(() => check(clusterRole('gathering', []), gathering)).toThrow('aggregationRule');
});

test('an update that changes nothing about rights passes; labels are about rights', () => {
  const old = role('a', 'theirs', SECRETS);
  check({ ...old, metadata: { ...old.metadata, finalizers: [], annotations: { note: 'x' } } }, old);
  expect(() => check({ ...old, metadata: { ...old.metadata, labels: { 'to-admin': 'true' } } }, old)).toThrow();
  expect(() => check({ ...old, rules: [{ ...SECRETS, verbs: ['get'] }] }, old)).toThrow();
});

test('a binding gives what its writer holds, or takes the verb bind on the role', () => {
  check(binding('a', 'x', 'ClusterRole/reader', ANNA));
  expect(() => check(binding('a', 'x', 'ClusterRole/secrets', ANNA))).toThrow(
    'rolebindings.rbac.authorization.k8s.io "x" is forbidden',
  );
  check(binding('b', 'x', 'ClusterRole/secrets', ANNA));
  expect(() => check(binding('', 'x', 'ClusterRole/secrets', ANNA))).toThrow('clusterrolebindings.rbac');
  expect(() => check(binding('', 'x', 'ClusterRole/reader', ANNA))).toThrow('clusterrolebindings.rbac');
  const old = binding('a', 'x', 'ClusterRole/secrets', ANNA);
  check({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }, old);
  expect(() => check({ ...old, subjects: [...(old.subjects ?? []), { kind: 'User', name: 'bob' }] }, old)).toThrow();
});

test('a binding to a role that does not exist yet is refused, since its rules are unknown', () => {
  expect(() => check(binding('a', 'x', 'Role/later', ANNA))).toThrow(
    expect.objectContaining({ code: 'NotFound', message: 'roles.rbac.authorization.k8s.io "later" not found' }),
  );
  expect(() => check(binding('', 'x', 'Role/later', ANNA))).toThrow();
});

test('roles that are too large to be compared are refused soon', () => {
  const values = Array.from({ length: 5000 }, (_, index) => `v${index}`);
  const huge: PolicyRule = { verbs: values, apiGroups: values, resources: values, resourceNames: values };
  expect(missingRules([READ], [huge])).toBeUndefined();
  expect(missingRules([huge], [huge])).toBeUndefined();
  expect(missingRules(FULL_AUTHORITY, [huge])).toEqual([]);
  expect(() => check(role('a', 'huge', huge))).toThrow('too many to be compared');
});

test('only the four kinds of the group are checked', () => {
  expect(isRbacKind({ group: GROUP, kind: 'RoleBinding' })).toBe(true);
  expect(isRbacKind({ group: GROUP, kind: 'constructor' })).toBe(false);
  expect(isRbacKind({ group: '', kind: 'Role' })).toBe(false);
});

test('whatever wanted rules allow beyond the held ones is missing', () => {
  const some = <T>(...values: T[]) => fc.constantFrom(...values);
  const few = <T>(values: fc.Arbitrary<T>) => fc.array(values, { minLength: 1, maxLength: 2 });
  const rule: fc.Arbitrary<PolicyRule> = fc.oneof(
    fc.record({
      verbs: few(some('get', 'put', '*')),
      apiGroups: few(some('', 'g', '*')),
      resources: few(some('r', 'q', 'r/s', '*/s', '*')),
      resourceNames: fc.option(few(some('n', 'm')), { nil: undefined }),
    }),
    fc.record({ verbs: few(some('get', '*')), nonResourceURLs: few(some('/a', '/a/*', '/a/b', '*')) }),
  );
  // Every value that a rule can distinguish, and one of each sort that no rule names.
  const questions = ['get', 'put', 'other'].flatMap((verb) => [
    ...['', 'g', 'other'].flatMap((group) =>
      ['r', 'q', 'other'].flatMap((resource) =>
        ['', 's', 'other'].flatMap((subResource) =>
          ['', 'n', 'm', 'other'].map((name) => permission(anna, verb, { group, resource, subResource, name })),
        ),
      ),
    ),
    ...['/a', '/a/', '/a/b', '/other'].map((path) => ({ ...permission(anna, verb, {}), isResource: false, path })),
  ]);
  let covered = 0;
  fc.assert(
    fc.property(
      fc.array(rule, { minLength: 1, maxLength: 5 }),
      fc.array(rule, { minLength: 1, maxLength: 2 }),
      (held, wanted) => {
        const missing = missingRules(held, wanted) ?? [];
        const exceeding = questions.filter((attributes) => allows(wanted, attributes) && !allows(held, attributes));
        if (missing.length === 0) {
          covered += 1;
          expect(exceeding).toEqual([]);
        }
        // Several held rules that only together make up a star count as missing; that is on the safe side.
        for (const attributes of exceeding) expect(allows(missing, attributes)).toBe(true);
      },
    ),
    { numRuns: runs(2000) },
  );
  if (ALL_RUNS) expect(covered).toBeGreaterThan(0);
});
