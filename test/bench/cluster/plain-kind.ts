import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchClient } from '../api-client.ts';
import { REVISIONS } from '../api-rows.ts';
import { MERGE_PATCH } from './cluster-rows.ts';

const GROUP = 'bench.example.com';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const WRITERS = 16;

/** Objects of a definition that nothing but the kube-apiserver serves: the floor for the package kinds. */
export const PLAIN = `/apis/${GROUP}/v1/namespaces/default/plainrevisions`;

interface Revision {
  readonly metadata: {
    readonly name: string;
    readonly labels?: object;
    readonly annotations?: object;
  };
  readonly spec?: object;
  readonly status?: object;
}

/** Defines the kind, and creates an object of the same size for each package revision. Returns how many there are. */
export async function copyAsPlainObjects(client: BenchClient): Promise<number> {
  await client.send('POST', DEFINITIONS, definition());
  const { items } = JSON.parse((await client.send('GET', REVISIONS)).toString()) as { items: Revision[] };
  for (let attempt = 1; !(await isServed(client)); attempt += 1) {
    if (attempt > 100) throw new Error(`${PLAIN} is not served`);
    await sleep(100);
  }
  let next = 0;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      for (let item = items[next++]; item !== undefined; item = items[next++]) await copy(client, item);
    }),
  );
  return items.length;
}

/** Without the owners of its fields, which package revisions do not have: a server removes them when a change empties the list. */
async function copy(client: BenchClient, revision: Revision): Promise<void> {
  await client.send('POST', PLAIN, plainObject(revision));
  const withoutOwners = { metadata: { managedFields: [{}] } };
  await client.send('PATCH', `${PLAIN}/${revision.metadata.name}`, withoutOwners, MERGE_PATCH);
}

export function plainObject({ metadata: { name, labels, annotations }, spec, status }: Revision): object {
  return {
    ...{ apiVersion: `${GROUP}/v1`, kind: 'PlainRevision' },
    metadata: { name, labels, annotations },
    ...{ spec, status },
  };
}

async function isServed(client: BenchClient): Promise<boolean> {
  try {
    await client.send('GET', `${PLAIN}?limit=1`);
    return true;
  } catch {
    // The server accepts a definition some moments before it serves the kind.
    return false;
  }
}

function definition(): object {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const properties = { spec: { ...open, properties: { packageName: { type: 'string' } } }, status: open };
  const names = {
    plural: 'plainrevisions',
    singular: 'plainrevision',
    kind: 'PlainRevision',
    listKind: 'PlainRevisionList',
  };
  const version = {
    ...{ name: 'v1', served: true, storage: true },
    schema: { openAPIV3Schema: { type: 'object', properties } },
    selectableFields: [{ jsonPath: '.spec.packageName' }],
  };
  return {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: `plainrevisions.${GROUP}` },
    spec: { group: GROUP, scope: 'Namespaced', names, versions: [version] },
  };
}
