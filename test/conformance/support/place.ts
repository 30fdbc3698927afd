import { beforeAll, beforeEach, expect, inject } from 'vitest';
import { eventually } from '../../support/api/eventually.ts';
import { type Answer, KubeApi, type KubeObject } from '../../support/api/kube-api.ts';

/** A namespace for the tests of one file, on the server that is judged. */
export interface Place {
  readonly api: KubeApi;
  readonly namespace: string;
  /** The path of a resource in the namespace, such as `configmaps` or `coordination.k8s.io/v1/leases`. */
  path(resource: string, ...rest: string[]): string;
}

/** Why there is no server; empty if there is one. */
const missing = inject('serverMissing');

/** `beforeAll` for what needs a server: without one, all tests are skipped. What `prepare` returns runs after the tests. */
export function beforeAllServed(prepare: () => Promise<void | (() => Promise<void>)>): void {
  if (missing === '') beforeAll(prepare);
}

/** Makes the namespace before the tests of the file, and deletes it after them. */
export function usePlace(): Place {
  let api: KubeApi | undefined;
  let namespace = '';
  beforeEach((context) => {
    if (missing !== '') context.skip(missing);
  });
  beforeAllServed(async () => {
    const opened = await KubeApi.of(inject('kubeconfig'));
    api = opened;
    const made = await opened.post('/api/v1/namespaces', { metadata: { generateName: 'conformance-' } });
    namespace = made.body.metadata.name;
    return async () => {
      await opened.delete(`/api/v1/namespaces/${namespace}`);
      opened.close();
    };
  });
  return {
    get api() {
      if (api === undefined) throw new Error('the place is there once the tests run');
      return api;
    },
    get namespace() {
      return namespace;
    },
    path: (resource, ...rest) => [pathOf(resource, namespace), ...rest].join('/'),
  };
}

/** The path of a resource, in a namespace if one is given. */
export function pathOf(resource: string, namespace = ''): string {
  const parts = resource.split('/');
  const plural = parts.pop() ?? '';
  const prefix = parts.length === 0 ? '/api/v1' : `/apis/${parts.join('/')}`;
  return `${prefix}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`;
}

/** A ConfigMap as a client writes it. */
export function configMap(name: string, data: object = {}, metadata: object = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

/** The object of an answer that must have succeeded. */
export function made<Body = KubeObject>(answer: Answer<Body>): Body {
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
}

/** A Status of a failure, with more to match. */
export function failure(code: number, reason: string, more: object = {}) {
  const status = { apiVersion: 'v1', kind: 'Status', status: 'Failure', metadata: {}, code, reason, ...more };
  return expect.objectContaining({ status: code, body: expect.objectContaining(status) });
}

/**
 * The server answers 304 to a client that has the current document. Other test files define resources on the same server meanwhile, each of
 * which changes the document: the client then repeats the request with the tag that it got.
 */
export async function expectNotModified(
  api: KubeApi,
  path: string,
  answer: Answer<unknown>,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  let { etag } = answer.headers;
  await expect
    .poll(async () => {
      expect(etag).toMatch(/./);
      const next = await api.get(path, { ...headers, 'if-none-match': etag ?? '' });
      etag = next.headers.etag ?? etag;
      return next.status;
    })
    .toBe(304);
}

/** Waits until an object is deleted. */
export async function gone(api: KubeApi, path: string): Promise<void> {
  await eventually(
    () => api.get(path),
    ({ status }) => status === 404,
  );
}
