import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { defineKind } from '../../resource/schema/define-kind.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import type { User } from '../authentication/user.ts';
import { BOOTSTRAP_BINDINGS, BOOTSTRAP_ROLES } from './bootstrap-objects.ts';
import { followRbacObjects } from './follow-rbac-objects.ts';
import { missingRules } from './missing-rules.ts';
import { RbacAuthorizer } from './rbac-authorizer.ts';
import { RbacIndex } from './rbac-index.ts';
import { type ClusterRole, RBAC_GROUP, RBAC_PLURALS, type RbacKind, type RoleBinding } from './rbac-objects.ts';
import { reconcileBootstrapObjects } from './reconcile-bootstrap-objects.ts';
import { permission } from './require-allowed.ts';
import { binding, clusterRole, user } from './testing.ts';

function rbacKind(kind: RbacKind): Kind<ClusterRole> {
  return defineKind({
    group: RBAC_GROUP,
    version: 'v1',
    kind,
    plural: RBAC_PLURALS[kind],
    namespaced: !kind.startsWith('Cluster'),
    description: kind,
    nameRule: { pattern: /^[^/%]+$/, maxLength: 253, rule: 'must hold no slash' },
    fields: {
      rules: z.array(z.looseObject({})).optional(),
      subjects: z.array(z.looseObject({})).optional(),
      roleRef: z.looseObject({}).optional(),
    },
  }) as unknown as Kind<ClusterRole>;
}

async function setUp() {
  const clock = new ManualClock();
  const log = new EventLog({ clock });
  const registry = new Registry();
  const kinds = {
    Role: rbacKind('Role'),
    ClusterRole: rbacKind('ClusterRole'),
    RoleBinding: rbacKind('RoleBinding'),
    ClusterRoleBinding: rbacKind('ClusterRoleBinding'),
  };
  for (const kind of Object.values(kinds)) registry.register(new MemoryStorage(kind, { clock, log }));
  const client = new RegistryClient(registry, { name: 'test' }, 'controller');
  const index = new RbacIndex();
  const errors: unknown[] = [];
  const following = followRbacObjects(index, { client, kinds, clock, onError: (error) => errors.push(error) });
  onTestFinished(() => following.stop());
  await following.whenSynced();
  const authorizer = new RbacAuthorizer(index);
  const may = (who: User, verb: string, what: string, namespace = 'a', group = 'porch.kpt.dev') => {
    const [resource = '', subResource = ''] = what.split('/');
    return authorizer.decide(permission(who, verb, { group, resource, subResource, namespace })).allowed;
  };
  const reads = (who: User, path: string) =>
    authorizer.decide({ ...permission(who, 'get', {}), isResource: false, path }).allowed;
  const bind = async (name: string, role: string, namespace = 'a') => {
    const kind = namespace === '' ? kinds.ClusterRoleBinding : kinds.RoleBinding;
    await client.create(kind, binding(namespace, `${role}-${name}`, `ClusterRole/${role}`, { kind: 'User', name }));
    await settle();
  };
  return { kinds, client, errors, may, reads, bind };
}

test('rights follow the objects of the registry', async () => {
  const { kinds, client, errors, may, bind } = await setUp();
  const anna = user('anna');
  await bind('anna', 'reader');
  expect(may(anna, 'get', 'packages')).toBe(false);
  const rule = { verbs: ['get'], apiGroups: ['porch.kpt.dev'], resources: ['packages'] };
  const role = await client.create(kinds.ClusterRole, clusterRole('reader', [rule]));
  await settle();
  expect(may(anna, 'get', 'packages')).toBe(true);
  await client.update(kinds.ClusterRole, { ...role, rules: [] });
  await settle();
  expect(may(anna, 'get', 'packages')).toBe(false);
  await client.update(kinds.ClusterRole, { ...role, metadata: { name: 'reader' } });
  await client.delete(kinds.RoleBinding, { namespace: 'a', name: 'reader-anna' });
  await settle();
  expect(may(anna, 'get', 'packages')).toBe(false);
  expect(errors).toEqual([]);
});

test('a server starts with the usual roles as of its version, and leaves what people added or keep as it is', async () => {
  const { kinds, client } = await setUp();
  const kept = clusterRole('view', []);
  const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' };
  await client.create(kinds.ClusterRole, { ...kept, metadata: { ...kept.metadata, annotations } });
  // As an earlier version made it, with a rule that people added.
  const own = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
  const old = { verbs: ['get', 'list', 'watch'], apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions'] };
  await client.create(kinds.ClusterRole, clusterRole('sluice:approver', [own, old]));
  const [masters] = BOOTSTRAP_BINDINGS;
  const someone = { kind: 'User', name: 'someone', apiGroup: RBAC_GROUP };
  await client.create(kinds.ClusterRoleBinding, { ...masters, subjects: [someone] } as never);
  await reconcileBootstrapObjects(client, kinds);
  const approver = await client.get(kinds.ClusterRole, { name: 'sluice:approver' });
  const wanted = BOOTSTRAP_ROLES.find(({ metadata }) => metadata.name === 'sluice:approver')?.rules ?? [];
  expect(missingRules(approver.rules ?? [], [...wanted, own, old])).toEqual([]);
  const binding = await client.get(kinds.ClusterRoleBinding, { name: masters?.metadata.name ?? '' });
  expect((binding as unknown as RoleBinding).subjects).toEqual([someone, ...(masters?.subjects ?? [])]);
  await reconcileBootstrapObjects(client, kinds);
  expect(await client.get(kinds.ClusterRole, { name: 'sluice:approver' })).toEqual(approver);
  expect((await client.get(kinds.ClusterRole, { name: 'view' })).rules).toEqual([]);
  const { items: roles } = await client.list(kinds.ClusterRole);
  expect(roles).toHaveLength(BOOTSTRAP_ROLES.length);
  const label = { labelSelector: 'kubernetes.io/bootstrapping=rbac-defaults' };
  expect((await client.list(kinds.ClusterRole, label)).items).toHaveLength(BOOTSTRAP_ROLES.length - 2);
  expect((await client.list(kinds.ClusterRoleBinding, label)).items).toHaveLength(BOOTSTRAP_BINDINGS.length);
  const names = new Set(roles.map(({ metadata }) => metadata.name));
  for (const { roleRef } of BOOTSTRAP_BINDINGS) expect(names).toContain(roleRef.name);
});

test('what the usual roles allow', async () => {
  const { kinds, client, may, reads, bind } = await setUp();
  await reconcileBootstrapObjects(client, kinds);
  const people = ['admin', 'edit', 'view', 'sluice:package-editor', 'sluice:condition-issuer', 'sluice:approver'];
  for (const role of people) await bind(role, role);
  await bind('root', 'cluster-admin', '');
  const allowed = (verb: string, what: string, group?: string, namespace?: string) =>
    ['root', ...people].filter((name) => may(user(name), verb, what, namespace, group));

  expect(allowed('list', 'packagerevisions')).toEqual(['root', ...people]);
  expect(allowed('list', 'packagerevisions', undefined, 'other')).toEqual(['root']);
  expect(allowed('update', 'packagerevisions')).toEqual(['root', 'admin', 'edit', 'sluice:package-editor']);
  expect(allowed('update', 'packagerevisions/status')).toEqual([
    ...['root', 'admin', 'edit', 'sluice:package-editor', 'sluice:condition-issuer'],
  ]);
  expect(allowed('delete', 'packagerevisions')).toEqual(['root', 'admin', 'edit', 'sluice:package-editor']);
  expect(allowed('update', 'packagerevisions/approval')).toEqual(['root', 'admin', 'sluice:approver']);
  expect(allowed('patch', 'packagerevisionresources')).toEqual(['root', 'admin', 'edit', 'sluice:package-editor']);
  expect(allowed('create', 'repositories', 'config.porch.kpt.dev')).toEqual(['root', 'admin']);
  expect(allowed('create', 'packagevariants', 'config.porch.kpt.dev')).toEqual(['root', 'admin', 'edit']);
  expect(allowed('update', 'packagevariantsets', 'config.porch.kpt.dev')).toEqual(['root', 'admin', 'edit']);
  expect(allowed('get', 'packagevariants', 'config.porch.kpt.dev')).toEqual(['root', 'admin', 'edit', 'view']);
  // A preview shows only targets that the caller may read.
  for (const verb of ['get', 'list', 'watch'])
    expect(allowed(verb, 'deliverytargets', 'sluice.dev')).toEqual(['root', ...people]);
  expect(allowed('get', 'deliverytargets', 'sluice.dev', 'other')).toEqual(['root']);
  expect(allowed('update', 'deliverytargets', 'sluice.dev')).toEqual(['root', 'admin', 'edit']);
  expect(allowed('update', 'packagepolicies', 'sluice.dev')).toEqual(['root', 'admin']);
  expect(allowed('get', 'secrets', '')).toEqual(['root', 'admin', 'edit']);
  expect(allowed('create', 'rolebindings', RBAC_GROUP)).toEqual(['root', 'admin']);
  expect(allowed('create', 'clusterroles', RBAC_GROUP, '')).toEqual(['root']);
  expect(allowed('impersonate', 'users', '', '')).toEqual(['root']);
  expect(allowed('create', 'tokenreviews', 'authentication.k8s.io', '')).toEqual(['root']);

  const someone = user('someone', 'system:authenticated');
  const mayCreate = (resource: string, group: string) => may(someone, 'create', resource, '', group);
  expect(mayCreate('selfsubjectaccessreviews', 'authorization.k8s.io')).toBe(true);
  expect(mayCreate('selfsubjectreviews', 'authentication.k8s.io')).toBe(true);
  expect(mayCreate('subjectaccessreviews', 'authorization.k8s.io')).toBe(false);
  expect(may(someone, 'get', 'packagerevisions')).toBe(false);
  for (const path of ['/api', '/apis/porch.kpt.dev/v1alpha1', '/openapi/v3', '/version', '/livez'])
    expect(reads(someone, path)).toBe(true);
  expect(reads(someone, '/metrics')).toBe(false);
  expect(reads(user('unbound'), '/version')).toBe(false);
});
