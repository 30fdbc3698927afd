import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../test/support/runs.ts';
import type { User } from '../authentication/user.ts';
import { allows } from './allows.ts';
import type { RequestAttributes } from './authorizer.ts';
import type { ClusterRole, PolicyRule, RbacKind, Role, RoleBinding } from './rbac-objects.ts';
import { permission } from './require-allowed.ts';
import { authorizerOf, binding, clusterRole, role } from './testing.ts';

type RbacObject = Role | ClusterRole | RoleBinding;

const some = <T>(...values: T[]) => fc.constantFrom(...values);
const few = <T>(values: fc.Arbitrary<T>) => fc.array(values, { minLength: 1, maxLength: 3 });
const namespace = some('a', 'b');
const name = some('x', 'y');

const rule: fc.Arbitrary<PolicyRule> = fc.oneof(
  fc.record({
    verbs: few(some('get', 'update', '*')),
    apiGroups: few(some('', 'g', '*')),
    resources: few(some('things', 'things/status', '*/status', '*')),
    resourceNames: fc.option(few(some('one', 'two')), { nil: undefined, freq: 1 }),
  }),
  fc.record({ verbs: few(some('get', '*')), nonResourceURLs: few(some('/metrics', '/healthz/*', '*')) }),
);
const subject = fc.record({
  kind: some('User', 'Group', 'ServiceAccount', 'Other'),
  name: some('anna', 'ops', 'ci'),
  namespace: fc.option(namespace, { nil: undefined }),
});
const labels = fc.record({ level: some('1', '2') });
const object: fc.Arbitrary<RbacObject> = fc.oneof(
  fc.tuple(namespace, name, few(rule)).map(([where, what, rules]) => role(where, what, ...rules)),
  fc.tuple(name, few(rule), labels).map(([what, rules, marks]) => clusterRole(what, rules, marks)),
  fc.tuple(some('p', 'q'), few(rule), labels, labels).map(([what, rules, marks, matchLabels]) => ({
    ...clusterRole(what, rules, marks),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
  })),
  fc
    .tuple(
      some('', 'a', 'b'),
      name,
      some('Role/x', 'Role/y', 'ClusterRole/x', 'ClusterRole/p', 'ClusterRole/q', 'Odd/x'),
      few(subject),
    )
    .map(([where, what, ref, subjects]) => binding(where, what, ref, ...subjects)),
);
const step = fc.record({ object, gone: some(false, false, false, true) });
const user: fc.Arbitrary<User> = fc.record({
  name: some('anna', 'ops', 'ci', 'system:serviceaccount:a:ci', 'system:serviceaccount:b:anna'),
  groups: few(some('ops', 'anna', 'ci')),
});
const attributes: fc.Arbitrary<RequestAttributes> = fc.oneof(
  fc
    .record({
      user,
      verb: some('get', 'update'),
      group: some('', 'g'),
      resource: some('things', 'others'),
      subResource: some('', 'status'),
      namespace: some('', 'a', 'b'),
      name: some('', 'one', 'two'),
    })
    .map(({ user: who, verb, ...about }) => permission(who, verb, about)),
  fc
    .record({ user, verb: some('get', 'post'), path: some('/metrics', '/healthz/x', '/') })
    .map(({ user: who, verb, path }) => ({ ...permission(who, verb, {}), isResource: false, path })),
);

/** The decision by looking at all bindings, as the documentation of Kubernetes describes it. */
function naive(objects: readonly RbacObject[], attributes: RequestAttributes): boolean {
  const clusterRoles = objects.filter(({ kind }) => kind === 'ClusterRole') as ClusterRole[];
  const rulesOf = (found: ClusterRole, seen: readonly ClusterRole[] = []): readonly PolicyRule[] => {
    const selectors = found.aggregationRule?.clusterRoleSelectors;
    if (selectors === undefined) return found.rules ?? [];
    return clusterRoles
      .filter((other) => !seen.includes(other) && other !== found)
      .filter((other) => selectors.some(({ matchLabels }) => matchLabels?.level === other.metadata.labels?.level))
      .flatMap((other) => rulesOf(other, [...seen, found]));
  };
  return objects.some((each) => {
    if (!each.kind.endsWith('Binding')) return false;
    const { metadata, roleRef, subjects } = each as RoleBinding;
    if (metadata.namespace !== undefined && metadata.namespace !== attributes.namespace) return false;
    const named = (subjects ?? []).some((one) => {
      if (one.kind === 'User') return one.name === attributes.user.name;
      if (one.kind === 'Group') return attributes.user.groups.includes(one.name);
      const home = one.namespace ?? metadata.namespace;
      return one.kind === 'ServiceAccount' && attributes.user.name === `system:serviceaccount:${home}:${one.name}`;
    });
    const found = objects.find(
      ({ kind, metadata: of }) =>
        kind === roleRef.kind &&
        of.name === roleRef.name &&
        (kind === 'ClusterRole' || (of.namespace !== undefined && of.namespace === metadata.namespace)),
    );
    return named && found !== undefined && allows(rulesOf(found as ClusterRole), attributes);
  });
}

test('the index decides as a scan over all objects does, whatever was put and removed before', () => {
  let allowed = 0;
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.array(attributes, { minLength: 5, maxLength: 10 }),
      (steps, questions) => {
        const { index, authorizer } = authorizerOf();
        const present = new Map<string, RbacObject>();
        for (const { object: each, gone: removed } of steps) {
          const kind = each.kind as RbacKind;
          const id = `${kind} ${each.metadata.namespace} ${each.metadata.name}`;
          if (removed) {
            index.remove(kind, each);
            present.delete(id);
          } else {
            index.put(kind, each);
            present.set(id, each);
          }
          const [first] = questions;
          if (first !== undefined) authorizer.decide(first);
        }
        for (const attributes of questions) {
          const wanted = naive([...present.values()], attributes);
          if (wanted) allowed += 1;
          expect(authorizer.decide(attributes).allowed).toBe(wanted);
        }
      },
    ),
    { numRuns: runs(1000) },
  );
  // Random objects that allow nothing would prove nothing.
  if (ALL_RUNS) expect(allowed).toBeGreaterThan(0);
});
