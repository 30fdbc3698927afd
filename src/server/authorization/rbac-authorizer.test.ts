import { expect, test } from 'vitest';
import type { User } from '../authentication/user.ts';
import { BOOTSTRAP_ROLES } from './bootstrap-objects.ts';
import type { RbacAuthorizer } from './rbac-authorizer.ts';
import type { ClusterRole, PolicyRule } from './rbac-objects.ts';
import { permission } from './require-allowed.ts';
import { authorizerOf, binding, clusterRole, role, user } from './testing.ts';

const READ: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['configmaps'] };
const WRITE: PolicyRule = { ...READ, verbs: ['update'] };
const METRICS: PolicyRule = { verbs: ['get'], nonResourceURLs: ['/metrics'] };

function may(authorizer: RbacAuthorizer, who: User, namespace: string, verb = 'get') {
  return authorizer.decide(permission(who, verb, { resource: 'configmaps', namespace })).allowed;
}

test('a role counts in its namespace for those whom a binding there names', () => {
  const { authorizer } = authorizerOf(
    role('a', 'reader', READ),
    binding('a', 'readers', 'Role/reader', { kind: 'User', name: 'anna' }, { kind: 'Group', name: 'ops' }),
  );
  expect(may(authorizer, user('anna'), 'a')).toBe(true);
  expect(may(authorizer, user('bob', 'dev', 'ops'), 'a')).toBe(true);
  expect(may(authorizer, user('ops'), 'a')).toBe(false);
  expect(may(authorizer, user('bob', 'anna'), 'a')).toBe(false);
  expect(may(authorizer, user('anna'), 'b')).toBe(false);
  expect(may(authorizer, user('anna'), '')).toBe(false);
  expect(may(authorizer, user('anna'), 'a', 'update')).toBe(false);
});

test('a cluster role counts in the namespace of a binding, or everywhere', () => {
  const { authorizer } = authorizerOf(
    clusterRole('reader', [READ, METRICS]),
    binding('a', 'in-a', 'ClusterRole/reader', { kind: 'User', name: 'anna' }),
    binding('', 'all', 'ClusterRole/reader', { kind: 'User', name: 'bob' }),
  );
  expect(['a', 'b', ''].map((namespace) => may(authorizer, user('anna'), namespace))).toEqual([true, false, false]);
  expect(['a', 'b', ''].map((namespace) => may(authorizer, user('bob'), namespace))).toEqual([true, true, true]);
  const metrics = { ...permission(user('anna'), 'get', {}), isResource: false, path: '/metrics' };
  expect(authorizer.decide(metrics).allowed).toBe(false);
  expect(authorizer.decide({ ...metrics, user: user('bob') }).allowed).toBe(true);
});

test('service accounts go by their user name, in the namespace that the binding gives or is in', () => {
  const { authorizer } = authorizerOf(
    clusterRole('reader', [READ]),
    binding('a', 'own', 'ClusterRole/reader', { kind: 'ServiceAccount', name: 'ci' }),
    binding('b', 'other', 'ClusterRole/reader', { kind: 'ServiceAccount', name: 'ci', namespace: 'a' }),
    binding('', 'nowhere', 'ClusterRole/reader', { kind: 'ServiceAccount', name: 'ci' }),
    binding('c', 'all-of-a', 'ClusterRole/reader', { kind: 'Group', name: 'system:serviceaccounts:a' }),
  );
  const ci = user('system:serviceaccount:a:ci', 'system:serviceaccounts', 'system:serviceaccounts:a');
  expect(['a', 'b', 'c', 'd'].map((namespace) => may(authorizer, ci, namespace))).toEqual([true, true, true, false]);
  expect(may(authorizer, user('ci'), 'a')).toBe(false);
  expect(may(authorizer, user('system:serviceaccount:b:ci'), 'b')).toBe(false);
});

test('subjects of other kinds, and bindings to roles of other kinds, give nothing', () => {
  const { authorizer } = authorizerOf(
    clusterRole('reader', [READ]),
    role('a', 'reader', READ),
    binding('a', 'odd', 'ClusterRole/reader', { kind: 'user', name: 'anna' }, { kind: '__proto__', name: 'anna' }),
    binding('', 'role-of-no-namespace', 'Role/reader', { kind: 'User', name: 'anna' }),
    binding('a', 'odd-ref', 'Roles/reader', { kind: 'User', name: 'anna' }),
  );
  expect(may(authorizer, user('anna'), 'a')).toBe(false);
});

test('a RoleBinding without a namespace counts nowhere', () => {
  const { index, authorizer } = authorizerOf(clusterRole('reader', [READ]));
  index.put('RoleBinding', binding('', 'lost', 'ClusterRole/reader', { kind: 'User', name: 'anna' }));
  expect(may(authorizer, user('anna'), '')).toBe(false);
  expect(may(authorizer, user('anna'), 'a')).toBe(false);
});

test('system:masters may do everything without any object', () => {
  const { authorizer } = authorizerOf();
  expect(may(authorizer, user('root', 'system:masters'), 'a', 'anything')).toBe(true);
  expect(may(authorizer, user('system:masters'), 'a')).toBe(false);
});

test('the reason says by what a request is allowed, or which roles are missing', () => {
  const { authorizer } = authorizerOf(
    clusterRole('reader', [READ]),
    binding('a', 'readers', 'ClusterRole/reader', { kind: 'Group', name: 'ops' }),
    binding('a', 'broken', 'Role/gone', { kind: 'User', name: 'anna' }),
  );
  const decide = (who: User) => authorizer.decide(permission(who, 'get', { resource: 'configmaps', namespace: 'a' }));
  expect(decide(user('bob', 'ops')).reason).toBe(
    'RBAC: allowed by RoleBinding "readers/a" of ClusterRole "reader" to Group "ops"',
  );
  expect(decide(user('anna')).reason).toBe('RBAC: role.rbac.authorization.k8s.io "gone" not found');
  expect(decide(user('carl')).reason).toBe('');
  expect(decide(user('anna', 'ops')).allowed).toBe(true);
});

test('an aggregating role has the rules of the roles that it selects, in turn too, and not its own', () => {
  const selects = (label: string) => ({ clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] });
  const view: ClusterRole = { ...clusterRole('view', [], { 'to-edit': 'true' }), aggregationRule: selects('to-view') };
  const edit: ClusterRole = {
    ...clusterRole('edit', [METRICS], { 'to-view': 'true' }),
    aggregationRule: selects('to-edit'),
  };
  const { index, authorizer } = authorizerOf(
    view,
    edit,
    clusterRole('reads', [READ], { 'to-view': 'true' }),
    binding('', 'viewers', 'ClusterRole/view', { kind: 'User', name: 'anna' }),
    binding('', 'editors', 'ClusterRole/edit', { kind: 'User', name: 'bob' }),
  );
  expect(authorizer.rulesFor(user('anna'), '')).toEqual([READ]);
  expect(authorizer.rulesFor(user('bob'), '')).toEqual([READ]);
  const writes = clusterRole('writes', [WRITE], { 'to-edit': 'true' });
  index.put('ClusterRole', writes);
  expect(authorizer.rulesFor(user('bob'), '')).toEqual([WRITE, READ]);
  index.remove('ClusterRole', writes);
  expect(authorizer.rulesFor(user('bob'), '')).toEqual([READ]);
  const broken = {
    clusterRoleSelectors: [{ matchLabels: { 'no key!': 'x' } }, ...selects('to-view').clusterRoleSelectors],
  };
  index.put('ClusterRole', { ...view, aggregationRule: broken });
  expect(authorizer.rulesFor(user('anna'), '')).toEqual([READ]);
});

test('a change of a binding forgets what it said before', () => {
  const { index, authorizer } = authorizerOf(
    clusterRole('reader', [READ]),
    binding('a', 'readers', 'ClusterRole/reader', { kind: 'User', name: 'anna' }),
  );
  index.put('RoleBinding', binding('a', 'readers', 'ClusterRole/reader', { kind: 'User', name: 'bob' }));
  expect(may(authorizer, user('anna'), 'a')).toBe(false);
  expect(may(authorizer, user('bob'), 'a')).toBe(true);
  index.remove('RoleBinding', { metadata: { namespace: 'a', name: 'readers' } });
  expect(may(authorizer, user('bob'), 'a')).toBe(false);
});

test('roles that may read packages may read their explanation, history and differences', () => {
  const readers = ['view', 'edit', 'admin', 'sluice:package-editor', 'sluice:condition-issuer', 'sluice:approver'];
  const bindings = readers.map((name) => binding('a', name, `ClusterRole/${name}`, { kind: 'User', name }));
  const { authorizer } = authorizerOf(...BOOTSTRAP_ROLES, ...bindings);
  const verbs = (who: string, subResource: string) =>
    ['get', 'update', 'patch'].filter((verb) => {
      const place = { group: 'porch.kpt.dev', resource: 'packagerevisions', namespace: 'a', subResource };
      return authorizer.decide(permission(user(who), verb, place)).allowed;
    });
  for (const who of readers)
    for (const subResource of ['explain', 'history', 'diff', 'preview'])
      expect(verbs(who, subResource), who).toEqual(['get']);
  expect(verbs('stranger', 'explain')).toEqual([]);
});
