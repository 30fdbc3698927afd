import { expect, test } from 'vitest';
import { expectNotModified, made, usePlace } from './support/place.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly description?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

interface Document {
  readonly openapi?: string;
  readonly swagger?: string;
  readonly paths: Readonly<Record<string, object>>;
  readonly components?: { readonly schemas: Readonly<Record<string, Schema>> };
  readonly definitions?: Readonly<Record<string, Schema>>;
}

const place = usePlace();

/** The schema of a kind among those of a document. */
function schemaOf(schemas: Readonly<Record<string, Schema>> = {}, group: string, kind: string): Schema | undefined {
  return Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some((gvk) => gvk.group === group && gvk.kind === kind),
  );
}

test('version 3 is a document for each group, under an address that changes with it', async () => {
  // kube-apiserver sends this one as text/plain.
  const { text } = await place.api.get('/openapi/v3');
  const { paths } = JSON.parse(text) as { readonly paths: Record<string, { readonly serverRelativeURL: string }> };
  for (const [key, group, kind] of [
    ['api/v1', '', 'ConfigMap'],
    ['apis/coordination.k8s.io/v1', 'coordination.k8s.io', 'Lease'],
  ] as const) {
    const url = paths[key]?.serverRelativeURL ?? '';
    expect(url).toMatch(/^\/openapi\/v3\/.*\?hash=/);
    const answer = await place.api.get<Document>(url);
    const document = made(answer);
    expect(answer.headers['cache-control']).toContain('immutable');
    expect(document.openapi).toMatch(/^3\./);
    const schema = schemaOf(document.components?.schemas, group, kind);
    expect(Object.keys(schema?.properties ?? {})).toEqual(expect.arrayContaining(['apiVersion', 'kind', 'metadata']));
    expect(Object.keys(document.paths)).toContain(
      key === 'api/v1'
        ? '/api/v1/namespaces/{namespace}/configmaps/{name}'
        : '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases',
    );
  }
});

test('version 2 is one document, and is not sent again to those who have it', async () => {
  const answer = await place.api.get<Document>('/openapi/v2');
  const document = made(answer);
  expect(document.swagger).toBe('2.0');
  const fields = schemaOf(document.definitions, '', 'ConfigMap')?.properties ?? {};
  expect(Object.keys(fields)).toEqual(expect.arrayContaining(['data', 'binaryData', 'immutable']));
  expect(fields.data?.description).toMatch(/./);
  await expectNotModified(place.api, '/openapi/v2', answer);
});

test('schemas define which list fields are sets and maps', async () => {
  const { text } = await place.api.get('/openapi/v2');
  expect(text).toContain('"x-kubernetes-patch-merge-key":"uid"');
  expect(text).toContain('"x-kubernetes-patch-strategy":"merge"');
});
