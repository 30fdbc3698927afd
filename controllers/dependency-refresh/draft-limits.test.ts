import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { DependencyLimit } from '../../src/package/model/policy/policy.ts';
import { type PackageRevision, revisionId } from '../../src/package/model/revision/package-revision.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { DraftLimits } from './draft-limits.ts';

function revision(name: string, { namespace = 'a', workspace = 'v1', lifecycle = 'Published' } = {}): PackageRevision {
  const key = { repository: 'apps', package: name, workspace };
  const record = { createdAt: '2025-01-01T00:00:00Z' };
  return { namespace, name: `apps.${name}.${workspace}`, key, lifecycle, record } as PackageRevision;
}

describe('limits on drafts that are opened because of providers', () => {
  let rows: Map<string, PackageRevision>;
  let limit: DependencyLimit;
  let [evaluated, listed] = [0, 0];
  let woken: string[];
  let clock: ManualClock;
  let limits: DraftLimits;
  const other: DependencyLimit = { policy: 'other', maxOpenDrafts: 1 };
  const store = {
    list: ({ lifecycle }: { readonly lifecycle?: string } = {}) => {
      listed += 1;
      return [...rows.values()].filter((one) => lifecycle === undefined || one.lifecycle === lifecycle);
    },
    find: (id: string) => rows.get(id),
    repositoryOf: () => ({
      policyFor: ({ key }: PackageRevision) => {
        evaluated += 1;
        return { dependencyLimits: { both: [other, limit], only: [other] }[key.package] ?? [limit] };
      },
    }),
  } as never;

  function draft(name: string, namespace = 'a'): PackageRevision {
    const made = revision(name, { namespace, workspace: 'providers-2-x', lifecycle: 'Draft' });
    rows.set(revisionId(made), made);
    return made;
  }
  /** Opens a draft as the controller does. Returns whether it was permitted. */
  function open(name: string, namespace = 'a'): boolean {
    const published = revision(name, { namespace });
    if (limits.begin(published) !== undefined) return false;
    const made = draft(name, namespace);
    limits.note(undefined, made);
    limits.end(published, made);
    return true;
  }
  function remove(made: PackageRevision): void {
    rows.delete(revisionId(made));
    limits.note(made, undefined);
  }
  beforeEach(() => {
    rows = new Map();
    limit = { policy: 'calm', maxOpenDrafts: 1 };
    [evaluated, listed] = [0, 0];
    woken = [];
    clock = new ManualClock();
    limits = new DraftLimits({ store, clock, maxDraftsPerMinute: 10_000 });
  });
  const start = () => limits.start(({ name }: ObjectKey) => void woken.push(name));

  test('cost nothing for each that waits, however many are open', () => {
    limit = { policy: 'calm', maxOpenDrafts: 500 };
    for (let at = 0; at < 500; at += 1) draft(`open${at}`);
    start();
    [evaluated, listed] = [0, 0];
    for (let at = 0; at < 1000; at += 1)
      expect(limits.begin(revision(`web${at}`))).toMatchObject({ requeueAfter: 300_000 });
    expect([evaluated, listed]).toEqual([1500, 0]);
  });

  test('the end of a draft wakes the one that waits longest, and one that needs none the next', () => {
    start();
    expect(open('first')).toBe(true);
    for (const name of ['web', 'db', 'cache']) expect(open(name)).toBe(false);
    const [first] = rows.values();
    remove(first as PackageRevision);
    expect(woken).toEqual(['apps.web.v1']);
    // Its providers are what they were.
    limits.settle({ namespace: 'a', name: 'apps.web.v1' });
    expect(woken).toEqual(['apps.web.v1', 'apps.db.v1']);
    expect(open('db')).toBe(true);
    limits.settle({ namespace: 'a', name: 'apps.db.v1' });
    expect(woken).toHaveLength(2);
    expect(open('cache')).toBe(false);
  });

  test('one that another policy holds lets the next one begin', () => {
    start();
    expect(open('web')).toBe(true);
    expect(open('both')).toBe(false);
    expect(open('db')).toBe(false);
    expect(open('only')).toBe(true);
    remove(rows.get('a/apps.web.providers-2-x') as PackageRevision);
    expect(woken).toEqual(['apps.both.v1']);
    expect(open('both')).toBe(false);
    expect(woken).toEqual(['apps.both.v1', 'apps.db.v1']);
  });

  test('a draft counts once, also before its creation has ended', () => {
    start();
    limit = { policy: 'calm', maxOpenDrafts: 2 };
    expect(limits.begin(revision('web'))).toBeUndefined();
    limits.note(undefined, draft('web'));
    expect(open('db')).toBe(true);
  });

  test('those of two namespaces are counted apart, although their names are the same', () => {
    start();
    expect(limits.begin(revision('web'))).toBeUndefined();
    expect(open('web', 'b')).toBe(true);
    // It is still being created.
    expect(open('db')).toBe(false);
  });

  test('a draft that could not be created takes nothing of the rates', () => {
    start();
    for (let turn = 0; turn < 20; turn += 1) {
      expect(limits.begin(revision('web'))).toBeUndefined();
      limits.end(revision('web'));
    }
    limits.begin(revision('web'));
    expect(open('db')).toBe(false);
    limits.end(revision('web'));
    expect(woken).toEqual(['apps.db.v1']);
  });

  test('a policy that selects other packages counts within seconds', () => {
    start();
    limit = { policy: 'wide', maxOpenDrafts: 2 };
    expect(open('web')).toBe(true);
    expect(open('db')).toBe(true);
    limit = { policy: 'calm', maxOpenDrafts: 2 };
    clock.advance(10_000);
    expect(open('cache')).toBe(false);
  });
});
