import { expect, test } from 'vitest';
import type { InformerEvent } from '../../../controller/informer-store.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { type Repository, repositoryKind } from '../../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import { UnreadRepositories, wasRead } from './unread-repositories.ts';

const READ = { lastFullSyncTime: '2026-01-01T00:00:00Z' };

/** Repositories that change by `set`, and open and close by `open` and `close`; `outcome` is that of a list of a scope. */
function bench(...start: readonly Stored<Repository>[]) {
  const objects = new Map(start.map((object) => [keyText(keyOf(object)), object]));
  const opened = new Set<string>();
  let handler: (event: InformerEvent<Repository>) => void = () => undefined;
  let arrive: (id: string) => void = () => undefined;
  let depart: (id: string) => void = () => undefined;
  const wasShownAt = (address: string) => address.includes('written');
  const unread = new UnreadRepositories({
    repositories: {
      addHandler: (added) => {
        handler = added;
        for (const object of objects.values()) handler({ type: 'add', object });
        return () => undefined;
      },
      get: (key: ObjectKey) => objects.get(keyText(key)),
    },
    wasShownAt,
    wasRead: (object) => wasRead(object, () => [...objects.values()], wasShownAt),
    store: {
      findRepository: (id) => (opened.has(id) ? ({} as never) : undefined),
      onArrival: (listener) => {
        arrive = listener;
      },
      onDeparture: (listener) => {
        depart = listener;
      },
    },
  });
  return {
    ids: () => [...unread.ids()],
    set: (object: Stored<Repository>) => {
      const id = keyText(keyOf(object));
      const before = objects.get(id);
      objects.set(id, object);
      handler(before === undefined ? { type: 'add', object } : { type: 'update', object, old: before });
    },
    delete: (id: string) => {
      const object = objects.get(id) as Stored<Repository>;
      objects.delete(id);
      handler({ type: 'delete', object });
    },
    open: (id: string) => {
      opened.add(id);
      arrive(id);
    },
    close: (id: string) => {
      opened.delete(id);
      depart(id);
    },
    outcome: (namespace?: string, repository?: string) => {
      try {
        unread.expectNone({ namespace, repository });
        return 'listed';
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        return `${error.code}: ${error.message}`;
      }
    },
  };
}

function repository(id: string, status: Repository['status'] = READ, annotations = {}, uid = id): Stored<Repository> {
  const [namespace = '', name = ''] = id.split('/');
  const object = repositoryKind.complete({
    metadata: { namespace, name, uid, annotations },
    spec: { git: { repo: 'https://host/a.git' } },
  });
  return { ...object, status } as Stored<Repository>;
}

test('lists fail where they would lack a repository that was read before this process, and nowhere else', () => {
  const at = bench(repository('a/apps'), repository('a/new', {}), repository('b/new', {}));
  expect(at.outcome()).toContain('repository "apps" in namespace "a" was read before and cannot be read now');
  expect(at.outcome('a')).toContain('Unavailable');
  expect(at.outcome('a', 'apps')).toContain('sluice.dev/omit-while-unreachable=true');
  expect([at.outcome('a', 'new'), at.outcome('b'), at.outcome(undefined, 'new')]).toEqual([
    'listed',
    'listed',
    'listed',
  ]);
  expect(at.ids()).toEqual(['a/apps']);
  at.open('a/apps');
  expect([at.outcome(), at.ids()]).toEqual(['listed', []]);
});

test('a repository that this process has read is missed when it is closed while it is registered', () => {
  const at = bench();
  at.set(repository('a/apps', {}));
  at.open('a/apps');
  at.close('a/apps');
  expect(at.outcome('a')).toContain('Unavailable');
  at.delete('a/apps');
  expect(at.outcome()).toBe('listed');
  at.set(repository('a/apps', {}, {}, 'another'));
  expect(at.outcome()).toBe('listed');
});

test('a repository that is deleted, or that its users want to be left out, is not missed', () => {
  const at = bench(repository('a/apps'));
  at.set(repository('a/apps', READ, { 'sluice.dev/omit-while-unreachable': 'true' }));
  expect(at.outcome()).toBe('listed');
  at.set(repository('a/apps'));
  expect(at.outcome()).toContain('Unavailable');
  const { metadata, ...rest } = repository('a/apps');
  at.set({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(at.outcome()).toBe('listed');
});

test('a repository that was shown, and of which no status was written, is missed', () => {
  const shown = repository('a/apps', {});
  const git = { ...shown.spec.git, repo: 'https://host/written.git' } as never;
  const at = bench({ ...shown, spec: { ...shown.spec, git } });
  expect(at.outcome('a')).toContain('Unavailable');
  at.open('a/apps');
  expect(at.outcome('a')).toBe('listed');
});

test('a second registration of a place, which is refused, is not missed', () => {
  const git = { ...repository('a/apps').spec.git, repo: 'https://host/written.git' } as never;
  const at = bench(
    { ...repository('a/apps'), spec: { ...repository('a/apps').spec, git } },
    { ...repository('b/broken', {}), spec: { ...repository('b/broken').spec, git } },
  );
  expect(at.ids()).toEqual(['a/apps']);
  at.open('a/apps');
  expect(at.outcome()).toBe('listed');
});

test('a repository without packages is not missed, unless packages were written since', () => {
  const empty = { ...READ, packageCount: 0 };
  const written = repository('b/apps', empty);
  const git = { ...written.spec.git, repo: 'https://host/written.git' } as never;
  const at = bench(repository('a/apps', empty), { ...written, spec: { ...written.spec, git } });
  expect(at.ids()).toEqual(['b/apps']);
});
