import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { ObjectReaders } from './object-readers.ts';
import { policyOf } from './session-policy.ts';

const UPSTREAM = { repo: 'blueprints', package: 'web' };
const key = (name: string) => ({ namespace: 'default', name });

let client: RegistryClient;
let readers: ObjectReaders;

beforeEach(async () => {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  for (const kind of OBJECT_KINDS) registry.register(new MemoryStorage(kind, { clock: systemClock, log }));
  client = new RegistryClient(registry, { name: 'anna' }, 'cli');
  await client.create(repositoryKind, { metadata: { name: 'edge' }, spec: { git: { repo: '/edge.git' } } });
  await client.create(packagePolicyKind, {
    metadata: { name: 'fleets' },
    spec: {
      selector: { variantSets: ['fleet', 'sites'] },
      requiredGates: [{ conditionType: 'tested' }],
      approval: { quorum: { required: 2 } },
    },
  });
  readers = new ObjectReaders({ client, clock: systemClock });
  await readers.start();
});
afterEach(() => readers.stop());

/** Creates a variant, of a set unless that is undefined, and returns its uid. */
async function variant(name: string, set: string | undefined): Promise<string> {
  const owner =
    set &&
    (await client.create(packageVariantSetKind, {
      metadata: { name: set },
      spec: { upstream: UPSTREAM, targets: [{ repositories: [{ name: 'edge' }] }] },
    }));
  const { apiVersion, kind } = packageVariantSetKind;
  const ownerReferences = owner ? [{ apiVersion, kind, name: owner.metadata.name, uid: owner.metadata.uid }] : [];
  const made = await client.create(packageVariantKind, {
    metadata: { name, ownerReferences },
    spec: { upstream: UPSTREAM, downstream: { repo: 'edge', package: name } },
  });
  return made.metadata.uid;
}

/** The gates and quorums that the policy adds to a draft which an object owns. */
async function required(owner: { readonly kind?: string; readonly name: string; readonly uid: string } | undefined) {
  await readers.variants.refresh();
  const { apiVersion, kind } = packageVariantKind;
  const ownerReferences = owner === undefined ? [] : [{ apiVersion, kind, ...owner }];
  const revision = {
    ...{ namespace: 'default', name: 'edge.web.v1', path: 'web' },
    key: { repository: 'edge', package: 'web', workspace: 'v1' },
    record: { ownerReferences },
  } as unknown as PackageRevision;
  const { requiredGates, approvalRules } = policyOf(readers, revision, 'default');
  return { gates: requiredGates.length, quorums: approvalRules.length };
}

const CONCERNED = { gates: 1, quorums: 1 };
const UNCONCERNED = { gates: 0, quorums: 0 };

test('a policy with variantSets concerns only revisions of the variants of these sets', async () => {
  const uid = await variant('web', 'fleet');
  expect(await required({ name: 'web', uid })).toEqual(CONCERNED);
  expect(await required({ name: 'site', uid: await variant('site', 'sites') })).toEqual(CONCERNED);
  expect(await required({ name: 'far', uid: await variant('far', 'others') })).toEqual(UNCONCERNED);
  expect(await required({ name: 'single', uid: await variant('single', undefined) })).toEqual(UNCONCERNED);
  expect(await required(undefined)).toEqual(UNCONCERNED);
  // An owner of another kind, although a variant has its name and uid.
  expect(await required({ kind: 'ConfigMap', name: 'web', uid })).toEqual(UNCONCERNED);
});

test('it concerns them until their variant is deleted after its set, and no variant that has the name later', async () => {
  const uid = await variant('web', 'fleet');
  await client.delete(packageVariantSetKind, key('fleet'));
  expect(await required({ name: 'web', uid })).toEqual(CONCERNED);
  await client.delete(packageVariantKind, key('web'));
  expect(await required({ name: 'web', uid })).toEqual(UNCONCERNED);
  const later = await variant('web', 'fleet');
  expect(await required({ name: 'web', uid })).toEqual(UNCONCERNED);
  expect(await required({ name: 'web', uid: later })).toEqual(CONCERNED);
});
