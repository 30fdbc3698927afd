import { expect, test } from 'vitest';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { isOn, parseRequestPath } from './request-path.ts';

const G = '/apis/porch.kpt.dev/v1alpha1';

test.each([
  ['GET', `${G}/packagerevisions`, 'list packagerevisions.porch.kpt.dev/v1alpha1'],
  ['GET', `${G}/packagerevisions?watch=true`, 'watch packagerevisions.porch.kpt.dev/v1alpha1'],
  ['GET', `${G}/packagerevisions?watch=0`, 'list packagerevisions.porch.kpt.dev/v1alpha1'],
  ['HEAD', `${G}/packagerevisions`, 'list packagerevisions.porch.kpt.dev/v1alpha1'],
  ['GET', `${G}/namespaces/a/packagerevisions/x.y?watch=1`, 'get packagerevisions.porch.kpt.dev/v1alpha1 a/x.y'],
  [
    'PUT',
    `${G}/namespaces/a/packagerevisions/x/approval`,
    'update packagerevisions/approval.porch.kpt.dev/v1alpha1 a/x',
  ],
  ['POST', `${G}/namespaces/a/packagerevisions/`, 'create packagerevisions.porch.kpt.dev/v1alpha1 a/'],
  ['PATCH', '/api/v1/namespaces/a/secrets/s', 'patch secrets./v1 a/s'],
  ['DELETE', '/api/v1/namespaces/a/secrets/s', 'delete secrets./v1 a/s'],
  ['DELETE', '/api/v1/namespaces/a/secrets', 'deletecollection secrets./v1 a/'],
  ['GET', '/api/v1/namespaces', 'list namespaces./v1'],
  ['GET', '/api/v1/namespaces/a', 'get namespaces./v1 a/a'],
  ['PUT', '/api/v1/namespaces/a/finalize', 'update namespaces/finalize./v1 a/a'],
  ['GET', '/api/v1/namespaces/a/status', 'get namespaces/status./v1 a/a'],
  ['GET', '/api/v1/secrets?fieldSelector=metadata.name%3Ds', 'list secrets./v1 /s'],
  [
    'GET',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Abasic',
    'get clusterroles.rbac.authorization.k8s.io/v1 /system:basic',
  ],
])('%s %s', (method, url, expected) => {
  const { info } = parseRequestPath(method, url);
  const resource = info.subResource === '' ? info.resource : `${info.resource}/${info.subResource}`;
  const key = info.namespace === '' && info.name === '' ? '' : ` ${info.namespace}/${info.name}`;
  expect(info.isResource).toBe(true);
  expect(`${info.verb} ${resource}.${info.group}/${info.version}${key}`).toBe(expected);
});

test.each(['/', '/api', '/api/v1', '/apis/', '/apis/a.b', '/apis/a.b/v1', '/healthz', '/openapi/v3/apis/a/v1'])(
  '%s is a path and nothing more',
  (path) => {
    expect(parseRequestPath('GET', `${path}?x=y`).info).toMatchObject({
      isResource: false,
      path,
      verb: 'get',
      resource: '',
    });
  },
);

test.each([
  ['', 'must begin'],
  ['apis/a/v1', 'must begin'],
  ['http://elsewhere/apis/a/v1', 'must begin'],
  [`${G}//packagerevisions`, 'empty'],
  [`${G}/packagerevisions//`, 'empty'],
  [`${G}/namespaces/a/packagerevisions/..`, '".."'],
  [`${G}/namespaces/../packagerevisions`, '".."'],
  [`${G}/namespaces/%2e%2e/packagerevisions`, '".."'],
  [`${G}/packagerevisions/%2E`, '"."'],
  [`${G}/namespaces/a/packagerevisions/x%2Fapproval`, 'slash'],
  [`${G}/namespaces/a/packagerevisions/x%252Fapproval`, '"%"'],
  [`${G}/namespaces/a/packagerevisions/x%00`, 'control'],
  [`${G}/namespaces/a/packagerevisions/x%0d%0aY`, 'control'],
  [`${G}/namespaces/a/packagerevisions/x%5cy`, 'slash'],
  [`${G}/namespaces/a/packagerevisions/%ff`, 'encoded'],
  [`${G}/namespaces/a/packagerevisions/%`, 'encoded'],
  [`${G}/namespaces/A/packagerevisions`, 'namespace'],
  [`${G}/namespaces/${'a'.repeat(64)}/packagerevisions`, 'namespace'],
  [`${G}/packagerevisions/${'a'.repeat(254)}`, 'more than 253'],
  [`/${'a'.repeat(5000)}`, 'more than 4096'],
  ['/api/v1/watch/secrets', 'watch=true'],
])('%s is refused', (url, problem) => {
  expect(() => parseRequestPath('GET', url)).toThrow(
    expect.toSatisfy((error) => isSluiceError(error, 'BadRequest') && error.message.includes(problem)),
  );
});

test('nothing is served below a sub-resource', () => {
  expect(() => parseRequestPath('GET', `${G}/namespaces/a/packagerevisions/x/approval/y`)).toThrow(/could not find/);
});

test('a selector that cannot be read names no object', () => {
  expect(parseRequestPath('GET', '/api/v1/secrets?fieldSelector=%3D%3D').info.name).toBe('');
});

test('switches are on unless set otherwise', () => {
  const query = new URLSearchParams('a&b=true&c=1&d=false&e=0&f=False');
  expect(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => isOn(query, name))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
