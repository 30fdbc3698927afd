import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { packageStorages } from '../../../package/api/package-storages.ts';
import { RevisionStore } from '../../../package/store/revision-store.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import { keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { fieldSelector } from '../../../resource/selector/field-selector.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import type { Storage } from '../../../resource/storage/storage.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { InitialOpenings } from '../../service/initial-openings.ts';
import { awaitingStorage } from './awaiting-storage.ts';

const CONTEXT: RequestContext = { actor: { name: 'anna' }, face: 'api' };
const REPOSITORIES = ['default/apps', 'default/infra', 'other/apps'];

const NONE = { expectNone: () => undefined };

let clock: ManualClock;
let openings: InitialOpenings;
let storage: Storage;
/** The scopes of lists in which no repository may be unread. */
let unread: unknown[];
beforeEach(async () => {
  clock = new ManualClock();
  const stored = REPOSITORIES.map((id) => {
    const [namespace, name = ''] = id.split('/');
    return { metadata: { namespace, name } } as Stored;
  });
  const get = (key: ObjectKey) => stored.find(({ metadata }) => keyText(metadata) === keyText(key));
  const repositories = { get, list: () => stored } as never;
  openings = new InitialOpenings({ clock, repositories, timeoutMs: 10_000 });
  const inner = new MemoryStorage(configMapKind, { log: new EventLog({ clock }), clock });
  for (const id of REPOSITORIES) {
    const [namespace = '', repository] = id.split('/');
    await inner.create(CONTEXT, configMapKind.complete({ metadata: { namespace, name: `${repository}.web.v1` } }));
  }
  unread = [];
  storage = awaitingStorage(inner as unknown as Storage, openings, {
    expectNone: (scope) => void unread.push(scope),
  });
});

/** The repositories whose opening a request waited for, in the order in which they are opened. */
async function waitedFor(request: Promise<unknown>, order = REPOSITORIES): Promise<readonly string[]> {
  let isOver = false;
  const over = request.finally(() => {
    isOver = true;
  });
  const waited: string[] = [];
  for (const id of order) {
    for (let turn = 0; turn < 20; turn += 1) await clock.advanceAsync(1);
    if (isOver) break;
    waited.push(id);
    openings.note(id);
  }
  await clock.advanceAsync(20);
  await over;
  return waited;
}

const web = { namespace: 'default', name: 'apps.web.v1' };
const get = () => storage.get(CONTEXT, web);

test('a request on one object waits for its repository alone', async () => {
  openings.note('default/apps');
  const object = await get();
  expect(await waitedFor(storage.update(CONTEXT, object))).toEqual([]);
  expect(await waitedFor(storage.get(CONTEXT, { namespace: 'other', name: 'apps.web.v1' }), ['other/apps'])).toEqual([
    'other/apps',
  ]);
});

test.each([
  ['all objects', {}, REPOSITORIES],
  ['those of a namespace', { namespace: 'default' }, ['default/apps', 'default/infra']],
  [
    'one object, by its name',
    { namespace: 'default', fieldSelector: fieldSelector('metadata.name=apps.web.v1') },
    ['default/apps'],
  ],
])('a list of %s waits for their repositories', async (_what, options, expected) => {
  expect(await waitedFor(storage.list(CONTEXT, options))).toEqual(expected);
});

test('a deletion waits for all repositories, whose packages may depend on it', async () => {
  expect(await waitedFor(storage.delete(CONTEXT, web))).toEqual(REPOSITORIES);
});

test('a creation waits for the repository that it names', async () => {
  const object = {
    ...configMapKind.complete({ metadata: { namespace: 'default', name: 'x' } }),
    spec: { repository: 'apps' },
  };
  expect(await waitedFor(storage.create(CONTEXT, object))).toEqual(['default/apps']);
});

test('has all that the storages of packages have', () => {
  const store = new RevisionStore();
  const log = new EventLog({ clock });
  const inner = Object.values(packageStorages({ store, log, clock, explain: undefined })) as unknown as Storage[];
  for (const one of inner) {
    const { kind, verbs, subResources, updatesNeedVersion, ignoresVersionOnCreate, applyNeverRemoves } = one;
    expect(awaitingStorage(one, openings, NONE)).toMatchObject({
      ...{ kind, subResources },
      ...JSON.parse(JSON.stringify({ verbs, updatesNeedVersion, ignoresVersionOnCreate, applyNeverRemoves })),
    });
    expect(awaitingStorage(one, openings, NONE).afterPatch === undefined).toBe(one.afterPatch === undefined);
    expect(awaitingStorage(one, openings, NONE).readOnlySubResources?.map(({ name }) => name)).toEqual(
      one.readOnlySubResources?.map(({ name }) => name),
    );
  }
});

test('a list expects that no repository of its scope is unread', async () => {
  for (const id of REPOSITORIES) openings.note(id);
  await storage.list(CONTEXT, {});
  await storage.list(CONTEXT, { namespace: 'default' });
  await storage.list(CONTEXT, { fieldSelector: fieldSelector('metadata.name=apps.web.v1') });
  expect(unread).toEqual([{}, { namespace: 'default' }, { repository: 'apps' }]);
});
