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
      approval: { automatic: true, quorum: { required: 2 } },
    },
  });
  readers = new ObjectReaders({ client, clock: systemClock });
  await readers.start();
});
afterEach(() => readers.stop());

/** Creates a variant, of a set unless that is undefined, and returns its uid. */
async function variant(path: string, set: string | undefined, name = path): Promise<string> {
  const owner = set && ((await client.find(packageVariantSetKind, key(set))) ?? (await createSet(set)));
  const { apiVersion, kind } = packageVariantSetKind;
  const ownerReferences = owner
    ? [{ apiVersion, kind, name: owner.metadata.name, uid: owner.metadata.uid, controller: true }]
    : [];
  const made = await client.create(packageVariantKind, {
    metadata: { name, ownerReferences },
    spec: { upstream: UPSTREAM, downstream: { repo: 'edge', package: path } },
  });
  return made.metadata.uid;
}

const createSet = (name: string) =>
  client.create(packageVariantSetKind, {
    metadata: { name },
    spec: { upstream: UPSTREAM, targets: [{ repositories: [{ name: 'edge' }] }] },
  });

/** What the policy adds to a draft of a package, which a variant may own: gates and quorums, and whether it approves it. */
async function policyFor(
  path: string,
  owner?: { readonly kind?: string; readonly name: string; readonly uid: string },
) {
  await readers.variants.refresh();
  await readers.variantSets.refresh();
  const { apiVersion, kind } = packageVariantKind;
  const ownerReferences = owner === undefined ? [] : [{ apiVersion, kind, ...owner }];
  const revision = {
    ...{ namespace: 'default', name: `edge.${path}.v1`, path },
    key: { repository: 'edge', package: path, workspace: 'v1' },
    record: { ownerReferences },
  } as unknown as PackageRevision;
  const { requiredGates, approvalRules, automatic } = policyOf(readers, revision, 'default');
  return [requiredGates.length, approvalRules.length, automatic.length];
}

const OWNED = [1, 1, 1];
const RESTRICTED = [1, 1, 0];
const UNCONCERNED = [0, 0, 0];

test('a policy with variantSets restricts the packages of their variants, and approves what these own', async () => {
  const uid = await variant('web', 'fleet');
  expect(await policyFor('web', { name: 'web', uid })).toEqual(OWNED);
  expect(await policyFor('web')).toEqual(RESTRICTED);
  // An owner of another kind, although a variant has its name and uid.
  expect(await policyFor('web', { kind: 'ConfigMap', name: 'web', uid })).toEqual(RESTRICTED);
  expect(await policyFor('site', { name: 'site', uid: await variant('site', 'sites') })).toEqual(OWNED);
  expect(await policyFor('far', { name: 'far', uid: await variant('far', 'others') })).toEqual(UNCONCERNED);
  expect(await policyFor('single', { name: 'single', uid: await variant('single', undefined) })).toEqual(UNCONCERNED);
  expect(await policyFor('none')).toEqual(UNCONCERNED);
  // The owner of another package.
  expect(await policyFor('none', { name: 'web', uid })).toEqual(RESTRICTED);
});

test('it approves nothing after the set is deleted, also if another one has its name', async () => {
  const uid = await variant('web', 'fleet');
  await client.delete(packageVariantSetKind, key('fleet'));
  expect(await policyFor('web', { name: 'web', uid })).toEqual(RESTRICTED);
  await createSet('fleet');
  expect(await policyFor('web', { name: 'web', uid })).toEqual(RESTRICTED);
  await client.delete(packageVariantKind, key('web'));
  expect(await policyFor('web', { name: 'web', uid })).toEqual(UNCONCERNED);
  const later = await variant('web', 'fleet');
  expect(await policyFor('web', { name: 'web', uid })).toEqual(RESTRICTED);
  expect(await policyFor('web', { name: 'web', uid: later })).toEqual(OWNED);
});
