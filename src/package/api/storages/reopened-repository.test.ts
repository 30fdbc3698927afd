import { expect, test } from 'vitest';
import { revision } from '../../../../test/support/package-kinds.ts';
import { anna, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, outcomeOf } from '../../../../test/support/shop.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { RevisionStore } from '../../store/revision-store.ts';
import { packageStorages } from '../package-storages.ts';

const name = 'packages.shop.v1';
const key = { namespace: 'default', name };
const opening =
  'Unavailable: repository "packages" is registered, but not open yet; try again, or see "sluice repo get" for what hinders it';

/** Package kinds over a store whose repository is registered until `unregister`, and can be closed and opened again. */
async function registered(scratch: Scratch) {
  let isRegistered = true;
  const store = new RevisionStore({ isComing: () => isRegistered });
  const { clock } = scratch;
  const kinds = packageStorages({ store, log: new EventLog({ clock }), clock });
  const open = async () => {
    const { repository } = await scratch.open({ onChange: (changes) => store.announce(changes) });
    await store.add(repository);
    return repository;
  };
  return {
    ...kinds,
    store,
    open,
    close: () => store.remove('default/packages'),
    unregister: async () => {
      isRegistered = false;
      await store.remove('default/packages');
    },
  };
}

test('what a closed repository has is not reported as missing while it is registered', async () => {
  await using scratch = await scratchRepository();
  const { store, revisions, resources, packages, open, close, unregister } = await registered(scratch);
  await open();
  await draft(store);
  const object = await revisions.get(anna, key);
  const files = await resources.get(anna, key);
  await close();
  const requests = {
    get: () => revisions.get(anna, key),
    'get without a namespace': () => revisions.get(anna, { name }),
    'get files': () => resources.get(anna, key),
    'get package': () => packages.get(anna, { namespace: 'default', name: 'packages.shop' }),
    history: () => {
      const reading = revisions.readOnlySubResources.find((one) => one.name === 'history');
      return reading?.read(anna, key, new URLSearchParams()) ?? Promise.resolve();
    },
    update: () => revisions.update(anna, object),
    'update files': () => resources.update(anna, files),
    approve: () => revisions.updateSubResource(anna, 'approval', object),
    delete: () => revisions.delete(anna, key),
    change: () => store.change(`default/${name}`, {}, anna),
    evaluate: () => store.evaluate(`default/${name}`),
  };
  for (const [what, request] of Object.entries(requests)) {
    expect(`${what} ${await outcomeOf(request())}`).toBe(`${what} ${opening}`);
  }
  await open();
  expect((await revisions.get(anna, key)).metadata.uid).toBe(object.metadata.uid);
  expect(await outcomeOf(revisions.get(anna, { ...key, name: 'packages.none.v1' }))).toMatch(/^NotFound/);
  await unregister();
  for (const [what, request] of Object.entries(requests))
    expect(`${what} ${await outcomeOf(request())}`).toContain(`${what} NotFound`);
});

test('a create that finds its repository closed waits for it, and so does one whose repository is closed after the commit', async () => {
  await using scratch = await scratchRepository();
  const { store, revisions, open, close } = await registered(scratch);
  await open();
  await close();
  const waiting = revisions.create(anna, revision('shop'));
  const opened = await open();
  expect((await waiting).metadata.name).toBe(name);
  let closed: Promise<void> | undefined;
  store.subscribe((changes) => {
    // As when the object of the repository changes at this moment.
    if (changes.some(({ after }) => after?.key.package === 'web')) closed ??= close();
  });
  const creating = revisions.create(anna, revision('web'));
  await expect.poll(() => closed !== undefined).toBe(true);
  await closed;
  expect(await open()).not.toBe(opened);
  expect((await creating).metadata.name).toBe('packages.web.v1');
});

test('a copy of a revision of a closed repository is not refused as one of a missing revision', async () => {
  await using scratch = await scratchRepository();
  await using other = await scratchRepository();
  const { store, revisions, open, close } = await registered(scratch);
  await open();
  await draft(store);
  const { repository } = await other.open({ name: 'others', onChange: (changes) => store.announce(changes) });
  await store.add(repository);
  await close();
  const tasks = [{ type: 'clone', clone: { upstreamRef: { upstreamRef: { name } } } }];
  const copy = revision('web', 'v1', { spec: { repository: 'others', tasks } });
  expect(await outcomeOf(revisions.create(anna, copy))).toBe(opening);
});
