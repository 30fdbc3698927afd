import { expect, test } from 'vitest';
import { allows } from './allows.ts';
import type { RequestAttributes } from './authorizer.ts';
import type { PolicyRule } from './rbac-objects.ts';

const GROUP = 'porch.kpt.dev';
const READ: PolicyRule = { verbs: ['get', 'list'], apiGroups: [GROUP], resources: ['packagerevisions'] };

function on(verb: string, resource: string, about: Partial<RequestAttributes> = {}): RequestAttributes {
  const [name = '', subResource = ''] = resource.split('/');
  return {
    user: { name: 'anna', groups: [] },
    verb,
    isResource: true,
    path: '/apis/x',
    group: GROUP,
    version: 'v1alpha1',
    resource: name,
    subResource,
    namespace: 'default',
    name: '',
    ...about,
  };
}

function at(verb: string, path: string): RequestAttributes {
  return on(verb, '', { isResource: false, path, group: '', namespace: '' });
}

test.each<[string, PolicyRule, RequestAttributes, boolean]>([
  ['a listed verb', READ, on('get', 'packagerevisions'), true],
  ['a verb that is not listed', READ, on('delete', 'packagerevisions'), false],
  ['every verb', { ...READ, verbs: ['*'] }, on('approve', 'packagerevisions'), true],
  ['no verbs', { ...READ, verbs: [] }, on('get', 'packagerevisions'), false],
  ['another group', READ, on('get', 'packagerevisions', { group: '' }), false],
  ['every group', { ...READ, apiGroups: ['*'] }, on('get', 'packagerevisions', { group: 'x' }), true],
  ['no groups', { ...READ, apiGroups: undefined }, on('get', 'packagerevisions'), false],
  ['the core group', { ...READ, apiGroups: [''] }, on('get', 'packagerevisions', { group: '' }), true],
  ['another resource', READ, on('get', 'packages'), false],
  ['every resource', { ...READ, resources: ['*'] }, on('get', 'packages'), true],
  ['a resource does not bring its sub-resources', READ, on('get', 'packagerevisions/approval'), false],
  ['every resource brings every sub-resource', { ...READ, resources: ['*'] }, on('get', 'packages/status'), true],
  [
    'a sub-resource',
    { ...READ, resources: ['packagerevisions/approval'] },
    on('get', 'packagerevisions/approval'),
    true,
  ],
  [
    'a sub-resource does not bring the resource',
    { ...READ, resources: ['packagerevisions/approval'] },
    on('get', 'packagerevisions'),
    false,
  ],
  [
    'one sub-resource of every resource',
    { ...READ, resources: ['*/approval'] },
    on('get', 'packagerevisions/approval'),
    true,
  ],
  ['one sub-resource is no other', { ...READ, resources: ['*/approval'] }, on('get', 'packagerevisions/status'), false],
  ['one sub-resource is no resource', { ...READ, resources: ['*/approval'] }, on('get', 'approval'), false],
  [
    'a star in other places is no pattern',
    { ...READ, resources: ['packagerevisions/*'] },
    on('get', 'packagerevisions/status'),
    false,
  ],
  ['a part of a name is no name', { ...READ, resources: ['package*'] }, on('get', 'packages'), false],
  ['a listed name', { ...READ, resourceNames: ['a', 'b'] }, on('get', 'packagerevisions', { name: 'b' }), true],
  ['another name', { ...READ, resourceNames: ['a'] }, on('get', 'packagerevisions', { name: 'b' }), false],
  ['names allow no request without one', { ...READ, resourceNames: ['a'] }, on('list', 'packagerevisions'), false],
  ['no names are all names', { ...READ, resourceNames: [] }, on('get', 'packagerevisions', { name: 'b' }), true],
  ['a star is no name', { ...READ, resourceNames: ['*'] }, on('get', 'packagerevisions', { name: 'b' }), false],
  ['a path', { verbs: ['get'], nonResourceURLs: ['/metrics'] }, at('get', '/metrics'), true],
  ['a path below', { verbs: ['get'], nonResourceURLs: ['/healthz'] }, at('get', '/healthz/etcd'), false],
  ['all paths below', { verbs: ['get'], nonResourceURLs: ['/healthz/*'] }, at('get', '/healthz/etcd'), true],
  [
    'all paths below are not the path',
    { verbs: ['get'], nonResourceURLs: ['/healthz/*'] },
    at('get', '/healthz'),
    false,
  ],
  ['every path', { verbs: ['*'], nonResourceURLs: ['*'] }, at('post', '/anything'), true],
  ['another verb on a path', { verbs: ['get'], nonResourceURLs: ['*'] }, at('post', '/metrics'), false],
  [
    'a rule for resources allows no path',
    { ...READ, resources: ['*'], apiGroups: ['*'], verbs: ['*'] },
    at('get', '/metrics'),
    false,
  ],
  [
    'a rule for paths allows no resource',
    { verbs: ['*'], nonResourceURLs: ['*'] },
    on('get', 'packagerevisions'),
    false,
  ],
  ['names from the prototype are no names', { ...READ, resources: [] }, on('get', 'constructor'), false],
])('%s', (_name, rule, attributes, allowed) => {
  expect(allows([rule], attributes)).toBe(allowed);
});

test('any rule is enough, and no rule allows nothing', () => {
  expect(allows([{ ...READ, verbs: [] }, READ], on('get', 'packagerevisions'))).toBe(true);
  expect(allows([], on('get', 'packagerevisions'))).toBe(false);
});

test('a permission is of one rule, not put together of several', () => {
  const verbs: PolicyRule = { ...READ, verbs: ['delete'], resources: ['packages'] };
  expect(allows([READ, verbs], on('delete', 'packagerevisions'))).toBe(false);
});
