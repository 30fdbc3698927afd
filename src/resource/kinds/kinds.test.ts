import { describe, expect, test } from 'vitest';
import type { Kind } from '../schema/kind.ts';
import { thrownCauses } from '../schema/testing.ts';
import { apiServiceKind } from './apiregistration/api-service.ts';
import { leaseKind } from './coordination/lease.ts';
import { configMapKind } from './core/config-map.ts';
import { eventKind } from './core/event.ts';
import { namespaceKind } from './core/namespace.ts';
import { secretKind } from './core/secret.ts';
import { OBJECT_KINDS, PACKAGE_KINDS, SERVER_KINDS } from './index.ts';
import { packageRevisionKind } from './porch/package-revision.ts';
import { repositoryKind } from './porch/repository.ts';
import { clusterRoleKind, roleKind } from './rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from './rbac/role-binding.ts';

const cells = (kind: Kind, object: unknown) => {
  const parsed = kind.parse(object).object;
  return Object.fromEntries(kind.printerColumns.map(({ name, value }) => [name, value(parsed)]));
};

test.each([
  ['Namespace', 'Name, Status, Age'],
  ['ServiceAccount', 'Name, Secrets, Age'],
  ['Service', 'Name, Type, Cluster-IP, Port(s), Age'],
  ['Secret', 'Name, Type, Data, Age'],
  ['ConfigMap', 'Name, Data, Age'],
  ['Event', 'Last Seen, Type, Reason, Object, Subobject, Source, Message, First Seen, Count, Name'],
  ['Lease', 'Name, Holder, Age'],
  ['Role', 'Name, Created At'],
  ['ClusterRole', 'Name, Created At'],
  ['RoleBinding', 'Name, Role, Age, Users, Groups, ServiceAccounts'],
  ['ClusterRoleBinding', 'Name, Role, Age, Users, Groups, ServiceAccounts'],
  ['CustomResourceDefinition', 'Name, Created At'],
  ['APIService', 'Name, Service, Available, Age'],
  ['Pod', 'Name, Status, Age'],
  ['PorchPackage', 'Name, Package, Repository, Latest Revision'],
])('%s has the columns that kubectl users know', (name, expected) => {
  const kind = [...OBJECT_KINDS, ...PACKAGE_KINDS, ...SERVER_KINDS].find((known) => known.kind === name);
  expect(kind?.printerColumns.map((column) => column.name).join(', ')).toBe(expected);
});

describe('roles and bindings', () => {
  const rule = { verbs: ['get'], apiGroups: [''], resources: ['secrets'] };
  const ref = { kind: 'ClusterRole', name: 'system:viewer' } as const;

  test('may have names with colons, but none that is a path', () => {
    expect(clusterRoleKind.complete({ metadata: { name: 'system:viewer' }, rules: [rule] }).metadata.name).toBe(
      'system:viewer',
    );
    for (const name of ['a/b', '..', '.', 'a%2fb', 'a b', 'a\0b'])
      expect(thrownCauses(() => clusterRoleKind.complete({ metadata: { name }, rules: [] }))[0]).toContain(
        'metadata.name: Invalid',
      );
  });

  test('a rule is about resources or about paths', () => {
    const check = (kind: Kind, bad: object) =>
      thrownCauses(() => kind.parse({ metadata: { name: 'r' }, rules: [bad] }));
    expect(check(roleKind, { verbs: [] })).toEqual(['rules[0].verbs: Required value']);
    expect(check(roleKind, { verbs: ['get'] })).toEqual([
      'rules[0].apiGroups: Required value',
      'rules[0].resources: Required value',
    ]);
    expect(check(roleKind, { verbs: ['get'], nonResourceURLs: ['/metrics'] })[0]).toContain('about resources only');
    expect(check(clusterRoleKind, { ...rule, nonResourceURLs: ['/metrics'] })[0]).toContain('not about both');
    const paths = { metadata: { name: 'r' }, rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }] };
    expect(clusterRoleKind.complete(paths).rules).toHaveLength(1);
    expect(roleKind.parse({ metadata: { name: 'r' }, rules: null }).object.rules).toEqual([]);
  });

  test('API groups of subjects and roles need not be written', () => {
    const binding = roleBindingKind.complete({
      metadata: { name: 'b' },
      roleRef: ref,
      subjects: [
        { kind: 'User', name: 'anna' },
        { kind: 'ServiceAccount', name: 'bot', namespace: 'default' },
      ],
    });
    expect(binding.roleRef.apiGroup).toBe('rbac.authorization.k8s.io');
    expect(binding.subjects?.map((subject) => subject.apiGroup)).toEqual(['rbac.authorization.k8s.io', undefined]);
    expect(cells(roleBindingKind, binding)).toMatchObject({
      Role: 'ClusterRole/system:viewer',
      Users: 'anna',
      ServiceAccounts: 'default/bot',
    });
  });

  test('subjects are validated by their kind', () => {
    const check = (subject: object) =>
      thrownCauses(() => roleBindingKind.parse({ metadata: { name: 'b' }, roleRef: ref, subjects: [subject] }));
    expect(check({ kind: 'ServiceAccount', name: 'bot', namespace: '../x' })[0]).toContain(
      'subjects[0].namespace: Invalid',
    );
    expect(check({ kind: 'User', name: 'anna', namespace: 'x' })[0]).toContain('Forbidden: a User has no namespace');
    expect(check({ kind: 'User', name: 'anna', apiGroup: 'apps' })[0]).toContain(
      'subjects[0].apiGroup: Invalid value: "apps"',
    );
    expect(check({ kind: 'Robot', name: 'r' })[0]).toContain('Unsupported value: "Robot"');
  });

  test('a service account may be one of the namespace of its binding', () => {
    const given = { metadata: { name: 'b' }, roleRef: ref, subjects: [{ kind: 'ServiceAccount', name: 'bot' }] };
    expect(roleBindingKind.parse(given).object.subjects).toEqual(given.subjects);
    const everywhere = { ...given, roleRef: { kind: 'ClusterRole', name: 'x' } };
    expect(thrownCauses(() => clusterRoleBindingKind.parse(everywhere))).toEqual([
      'subjects[0].namespace: Required value',
    ]);
  });

  test('a ClusterRoleBinding requires a ClusterRole, and keeps its role', () => {
    const bad = { metadata: { name: 'b' }, roleRef: { kind: 'Role', name: 'x' } };
    expect(thrownCauses(() => clusterRoleBindingKind.parse(bad))[0]).toContain(
      'roleRef.kind: Unsupported value: "Role"',
    );
    const old = clusterRoleBindingKind.complete({
      metadata: { name: 'b' },
      roleRef: { kind: 'ClusterRole', name: 'x' },
    });
    const next = { ...old, roleRef: { ...old.roleRef, name: 'y' } };
    expect(clusterRoleBindingKind.strategy.validateUpdate(old, next)).toMatchObject([{ field: 'roleRef' }]);
    expect(clusterRoleBindingKind.strategy.validateUpdate(old, { ...next, roleRef: old.roleRef })).toEqual([]);
  });
});

describe('immutable data', () => {
  const sealed = configMapKind.complete({ metadata: { name: 'a' }, immutable: true, data: { k: 'v' } });

  test('stays, and stays immutable', () => {
    const fields = (next: object) =>
      configMapKind.strategy.validateUpdate(sealed, { ...sealed, ...next }).map(({ field }) => field);
    expect(fields({ metadata: { name: 'a', labels: { x: 'y' } } })).toEqual([]);
    expect(fields({ data: { k: 'w' } })).toEqual(['data']);
    expect(fields({ binaryData: { b: 'AA==' } })).toEqual(['binaryData']);
    expect(fields({ immutable: false, data: {} })).toEqual(['immutable', 'data']);
    const open = { ...sealed, immutable: false };
    expect(configMapKind.strategy.validateUpdate(open, { ...sealed, data: {} })).toEqual([]);
  });

  test('of a Secret is not in the message, and its type never changes', () => {
    const old = secretKind.complete({ metadata: { name: 's' }, immutable: true, stringData: { password: 'hunter2' } });
    const next = secretKind.complete({
      metadata: { name: 's' },
      immutable: true,
      type: 'x/y',
      stringData: { password: 'letmein' },
    });
    const causes = secretKind.strategy.validateUpdate(old, next) ?? [];
    expect(causes.map((cause) => cause.field)).toEqual(['type', 'data']);
    expect(JSON.stringify(causes)).not.toMatch(/aHVudGVyMg|bGV0bWVpbg|x\/y/);
  });
});

describe('objects of client-go', () => {
  test('an event of a recorder', () => {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.17a8b9c0d1e2f3a4', namespace: 'default', creationTimestamp: null },
      involvedObject: {
        kind: 'PackageRevision',
        namespace: 'default',
        name: 'web',
        uid: 'u',
        apiVersion: 'porch.kpt.dev/v1alpha1',
      },
      reason: 'Approved',
      message: 'approved by anna\n',
      source: { component: 'approver' },
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:05:05Z',
      count: 3,
      type: 'Normal',
      eventTime: null,
      series: null,
      related: null,
      reportingComponent: 'approver',
      reportingInstance: '',
    };
    expect(eventKind.parse(event).unknownFields).toEqual([]);
    expect(cells(eventKind, event)).toMatchObject({
      'Last Seen': '2026-01-02T03:05:05Z',
      Object: 'packagerevision/web',
      Message: 'approved by anna',
      Source: 'approver',
      Count: 3,
    });
    const series = { count: 7, lastObservedTime: '2026-01-02T04:04:05.123456Z' };
    const newer = {
      ...event,
      firstTimestamp: null,
      lastTimestamp: null,
      eventTime: '2026-01-02T03:04:05.123456Z',
      series,
    };
    expect(eventKind.parse(newer).object.eventTime).toBe('2026-01-02T03:04:05.123456Z');
    expect(cells(eventKind, newer)).toMatchObject({ 'Last Seen': series.lastObservedTime, Count: 7 });
    expect(eventKind.parse({ metadata: { generateName: 'web-' }, involvedObject: {} }).object.type).toBe('Normal');
  });

  test('a lease that is held, and one that was released', () => {
    const spec = {
      holderIdentity: 'a_1',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-02T03:04:05.000000Z',
      renewTime: '2026-01-02T03:04:15.000000Z',
      leaseTransitions: 0,
    };
    expect(leaseKind.parse({ metadata: { name: 'l', creationTimestamp: null }, spec }).object.spec).toEqual(spec);
    expect(cells(leaseKind, { metadata: { name: 'l' }, spec: { ...spec, holderIdentity: '' } }).Holder).toBe('');
    expect(leaseKind.parse({ metadata: { name: 'l' } }).object.spec).toEqual({});
    const negative = { ...spec, leaseDurationSeconds: 0, leaseTransitions: -1 };
    expect(thrownCauses(() => leaseKind.parse({ metadata: { name: 'l' }, spec: negative }))).toHaveLength(2);
  });

  test('null for what is empty', () => {
    const value = {
      metadata: {
        name: 'a',
        labels: null,
        annotations: null,
        finalizers: null,
        ownerReferences: null,
        managedFields: null,
      },
      spec: { description: null, git: { repo: '/srv/x', branch: null, secretRef: null } },
      status: { conditions: null, lastFullSyncTime: null },
    };
    const { object, unknownFields } = repositoryKind.parse(value);
    expect(unknownFields).toEqual([]);
    expect(object.spec.git).toEqual({ repo: '/srv/x', branch: 'main', directory: '/' });
    expect(object.status).toEqual({ lastFullSyncTime: null });
    expect(value.spec.git.branch).toBeNull();
    expect(
      thrownCauses(() => repositoryKind.parse({ metadata: { name: 'a' }, spec: { git: { repo: null } } })),
    ).toEqual(['spec.git.repo: Required value']);
    expect(thrownCauses(() => clusterRoleKind.parse({ metadata: { name: 'a' }, rules: [null] }))[0]).toContain(
      'rules[0]',
    );
  });
});

test('a namespace is cluster-scoped and needs nothing but a name', () => {
  expect(namespaceKind.parse({ metadata: { name: 'a' } }).object.metadata).toEqual({
    name: 'a',
    labels: { 'kubernetes.io/metadata.name': 'a' },
  });
  expect(namespaceKind.namespaced).toBe(false);
  expect(thrownCauses(() => namespaceKind.parse({ metadata: { name: 'a.b' } }))[0]).toContain('metadata.name');
});

test('an API service is named after its group and version', () => {
  const spec = { group: 'porch.kpt.dev', version: 'v1alpha1' };
  const available = { conditions: [{ type: 'Available', status: 'True' }] };
  const local = { metadata: { name: 'v1alpha1.porch.kpt.dev' }, spec, status: available };
  expect(cells(apiServiceKind, local)).toMatchObject({ Service: 'Local', Available: 'True' });
  expect(apiServiceKind.parse({ metadata: { name: 'v1.' }, spec: { version: 'v1' } }).object.metadata.name).toBe('v1.');
  const remote = {
    ...local,
    spec: { ...spec, service: { namespace: 'porch-system', name: 'api' } },
    status: undefined,
  };
  expect(cells(apiServiceKind, remote)).toMatchObject({ Service: 'porch-system/api', Available: 'Unknown' });
  expect(thrownCauses(() => apiServiceKind.parse({ ...local, metadata: { name: 'v1' } }))[0]).toContain(
    '"v1alpha1.porch.kpt.dev"',
  );
});

test('a condition without a time gets one that clients can read', () => {
  const status = { conditions: [{ type: 'Ready', status: 'True' }] };
  const { object } = repositoryKind.parse({ metadata: { name: 'a' }, spec: {}, status });
  expect(object.status?.conditions?.[0]?.lastTransitionTime).toBe('1970-01-01T00:00:00Z');
});

describe('field owners', () => {
  const owner = {
    manager: 'kubectl',
    operation: 'Apply',
    apiVersion: 'v1',
    time: '2026-01-02T03:04:05Z',
    fieldsType: 'FieldsV1',
    fieldsV1: JSON.parse('{"f:spec": {"f:__proto__": {}, "__proto__": {"k:{}": {}}}}'),
  };
  const spec = { packageName: 'p', repository: 'r', workspaceName: 'w' };
  const parse = (managedFields: unknown) => packageRevisionKind.parse({ metadata: { managedFields }, spec });

  test('are kept as they are', () => {
    const { object, unknownFields } = parse([
      owner,
      { ...owner, operation: 'Update', subresource: 'status', fieldsV1: undefined },
    ]);
    expect(unknownFields).toEqual([]);
    expect(object.metadata.managedFields?.[0]).toEqual(owner);
    expect(JSON.stringify(object.metadata.managedFields?.[0]?.fieldsV1)).toBe(JSON.stringify(owner.fieldsV1));
    expect(object.metadata.managedFields?.[1]).toMatchObject({ subresource: 'status', fieldsV1: {} });
  });

  test.each([[[]], [[{}]]])('%j removes them, and an absent field leaves them', (managedFields) => {
    expect(parse(managedFields).object.metadata.managedFields).toEqual([]);
    expect(parse(undefined).object.metadata.managedFields).toBeUndefined();
    expect(parse(null).object.metadata.managedFields).toBeUndefined();
  });

  test('are bounded', () => {
    let deep: object = {};
    for (let level = 0; level < 50_000; level += 1) deep = { 'f:a': deep };
    const wide = Object.fromEntries(Array.from({ length: 100_001 }, (_, index) => [`f:${index}`, {}]));
    for (const fieldsV1 of [deep, wide])
      expect(thrownCauses(() => parse([{ ...owner, fieldsV1 }]))[0]).toContain('has too many fields or levels');
    expect(thrownCauses(() => parse(Array(201).fill(owner)))[0]).toContain('metadata.managedFields');
    expect(thrownCauses(() => parse([{ ...owner, fieldsV1: [] }]))[0]).toContain('expected object');
    expect(thrownCauses(() => parse([owner, {}]))[0]).toContain('managedFields[1].operation');
  });
});

test('ConfigMaps and Secrets are no place for files', () => {
  const large = 'x'.repeat(1024 * 1024);
  expect(thrownCauses(() => configMapKind.parse({ metadata: { name: 'a' }, data: { a: large, b: 'x' } }))[0]).toContain(
    'Too long: may not be more than 1048576 bytes',
  );
  const encoded = Buffer.from(`${large}x`).toString('base64');
  expect(thrownCauses(() => secretKind.parse({ metadata: { name: 'a' }, data: { a: encoded } }))[0]).toContain(
    'Too long',
  );
  expect(configMapKind.parse({ metadata: { name: 'a' }, data: { a: large } }).unknownFields).toEqual([]);
});
