import { expect, test } from 'vitest';
import { DeliveredPackages } from '../../../../src/delivery/delivered/delivered-packages.ts';
import { ManualClock } from '../../../../src/foundation/time/manual-clock.ts';
import type { PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionListener } from '../../../../src/package/store/revision-announcements.ts';
import { repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import type { ObjectKey } from '../../../../src/resource/object/object.ts';
import type { Kind } from '../../../../src/resource/schema/kind.ts';
import { ConsumerIndex, packageInterest } from './consumer-index.ts';
import { dependencySources } from './dependency-sources.ts';

function row(path: string, part: Partial<PackageRevision>): PackageRevision {
  const key = { repository: 'edge', package: path, workspace: 'v1' };
  return { key, namespace: 'default', name: `edge.${path}.v1`, revision: 1, ...part } as PackageRevision;
}

/** The sources of an index, with what they enqueue and the number of lookups that an event costs. */
function bench() {
  const listeners: RevisionListener[] = [];
  const woken: string[] = [];
  const handlers = new Map<Kind, ((event: object) => void)[]>();
  let lookups = 0;
  class CountingIndex extends ConsumerIndex {
    override of(name: string) {
      lookups += 1;
      return super.of(name);
    }
  }
  const consumers = new CountingIndex();
  const store = {
    find: () => undefined,
    subscribe: (listener: RevisionListener) => {
      listeners.push(listener);
      return () => undefined;
    },
  };
  const options = { store, targets: () => [], delivered: DeliveredPackages.from([]), clock: new ManualClock() };
  for (const source of dependencySources(options, consumers))
    source.start({
      enqueue: ({ name }: ObjectKey) => woken.push(name),
      prioritize: () => undefined,
      track: () => undefined,
      release: () => undefined,
      informer: ((kind: Kind) => ({
        addHandler: (handler: (event: object) => void) => {
          handlers.set(kind, [...(handlers.get(kind) ?? []), handler]);
          return () => undefined;
        },
      })) as never,
    });
  return {
    ...{ consumers, woken },
    /** An event of an object. */
    notify: (kind: unknown, event: object) => {
      woken.length = 0;
      for (const handler of handlers.get(kind as Kind) ?? []) handler(event);
      return woken;
    },
    change: (before: PackageRevision | undefined, after: PackageRevision | undefined) => {
      lookups = 0;
      woken.length = 0;
      for (const listener of listeners) listener([{ before, after }]);
      return lookups;
    },
  };
}

test('a publication wakes each of its thousand consumers once, and costs the same lookups however many others there are', () => {
  const { consumers, woken, change } = bench();
  for (let number = 0; number < 1000; number += 1) {
    consumers.record({ namespace: 'default', name: `c${number}` }, [packageInterest('default', 'db')]);
    consumers.record({ namespace: 'default', name: `o${number}` }, [packageInterest('default', `other${number}`)]);
    consumers.record({ namespace: 'foreign', name: `f${number}` }, [packageInterest('foreign', 'db')]);
  }
  const published = { lifecycle: 'Published', latest: true } as const;
  const before = row('db', { ...published, etag: '1' });
  expect(change(before, row('db', { ...published, etag: '2' }))).toBeLessThanOrEqual(2);
  expect(woken).toHaveLength(1000);
  expect(new Set(woken).size).toBe(1000);
  expect(woken.every((name) => name.startsWith('c'))).toBe(true);
  expect(change(before, before)).toBe(0);
  change(before, undefined);
  expect(woken).toHaveLength(1000);
});

test('a target that appears, selects other packages or vanishes wakes the consumers of its namespace once', () => {
  const { consumers, notify } = bench();
  const target = (event: object) => notify(deliveryTargetKind, event);
  const names = [packageInterest('default', 'db'), packageInterest('default', 'web')];
  consumers.record({ namespace: 'default', name: 'edge.web.v1' }, names);
  consumers.record({ namespace: 'foreign', name: 'edge.other.v1' }, [packageInterest('foreign', 'db')]);
  const object = (generation: number) => ({
    metadata: { namespace: 'default', name: 'west', generation },
    spec: { selector: {}, git: { repo: 'https://x.example/west.git' } },
  });
  for (const type of ['add', 'delete']) expect(target({ type, object: object(1) })).toEqual(['edge.web.v1']);
  expect(target({ type: 'update', old: object(1), object: object(2) })).toEqual(['edge.web.v1']);
  expect(target({ type: 'update', old: object(2), object: object(2) })).toEqual([]);
});

test('labels of a repository, by which targets select its packages, wake the consumers of the namespace', () => {
  const { consumers, notify } = bench();
  consumers.record({ namespace: 'default', name: 'edge.web.v1' }, [packageInterest('default', 'db')]);
  consumers.record({ namespace: 'foreign', name: 'edge.other.v1' }, [packageInterest('foreign', 'db')]);
  const repository = (metadata: object) => ({
    metadata: { name: 'edge', namespace: 'default', generation: 1, ...metadata },
    spec: {},
  });
  const update = (old: object, object: object) =>
    notify(repositoryKind, { type: 'update', old: repository(old), object: repository(object) });
  expect(update({ labels: { env: 'prod' } }, {})).toEqual(['edge.web.v1']);
  // Of a repository for deployments, without any selector.
  expect(update({}, { generation: 2 })).toEqual(['edge.web.v1']);
  expect(update({}, { annotations: { note: 'x' } })).toEqual([]);
});

test('pushes to a draft of a provider wake none, and a consumer that is published is forgotten', () => {
  const { consumers, woken, change } = bench();
  consumers.record({ namespace: 'default', name: 'edge.web.v1' }, [packageInterest('default', 'db')]);
  const draft = { lifecycle: 'Draft', revision: 0 } as const;
  change(row('db', { ...draft, etag: '1' }), row('db', { ...draft, etag: '2' }));
  expect(woken).toEqual([]);
  change(undefined, row('db', draft));
  expect(woken).toEqual(['edge.web.v1']);
  change(row('web', draft), row('web', { lifecycle: 'Published', latest: true, etag: '3' }));
  change(undefined, row('db', draft));
  expect(woken).toEqual([]);
});
