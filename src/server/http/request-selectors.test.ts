import { expect, test } from 'vitest';
import { parseRequestPath } from './request-path.ts';

const PODS = '/api/v1/namespaces/blue/pods';
const selectors = (method: string, url: string) => parseRequestPath(method, url).info.selectors;

test('requests for many objects carry their selectors, as reviews of authorization.k8s.io/v1 have them', () => {
  const query = `fieldSelector=${encodeURIComponent('spec.node=a,status.phase!=b')}&labelSelector=${encodeURIComponent('app=web,tier in (x,y),!old,new')}`;
  const expected = {
    fieldSelector: {
      requirements: [
        { key: 'spec.node', operator: 'In', values: ['a'] },
        { key: 'status.phase', operator: 'NotIn', values: ['b'] },
      ],
    },
    labelSelector: {
      requirements: [
        { key: 'app', operator: 'In', values: ['web'] },
        { key: 'tier', operator: 'In', values: ['x', 'y'] },
        { key: 'old', operator: 'DoesNotExist' },
        { key: 'new', operator: 'Exists' },
      ],
    },
  };
  expect(selectors('GET', `${PODS}?${query}`)).toEqual(expected);
  expect(selectors('GET', `${PODS}?watch=1&${query}`)).toEqual(expected);
  expect(selectors('DELETE', `${PODS}?${query}`)).toEqual(expected);
});

test('requests without valid selectors, and for one object, carry none', () => {
  expect(selectors('GET', PODS)).toBeUndefined();
  expect(selectors('GET', `${PODS}?labelSelector=&fieldSelector=`)).toBeUndefined();
  expect(selectors('GET', `${PODS}?labelSelector=${encodeURIComponent('((')}`)).toBeUndefined();
  expect(selectors('GET', `${PODS}/a?labelSelector=a`)).toBeUndefined();
  expect(selectors('POST', `${PODS}?labelSelector=a`)).toBeUndefined();
});
