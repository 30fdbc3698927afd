import fc from 'fast-check';
import { expect, test } from 'vitest';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { runs } from '../../test/support/runs.ts';
import { objectBench, refer } from '../testing-objects.ts';
import { garbageCollectionController } from './garbage-collection-controller.ts';

const COUNT = 8;
const object = fc.nat({ max: COUNT - 1 });

const deletion = fc.record({
  at: object,
  policy: fc.constantFrom('Background' as const, 'Foreground' as const, 'Orphan' as const),
});

/** Owners by dependent, computed without events and without an order. */
class Model {
  readonly owners = new Map<number, Set<number>>();

  remove(at: number, policy: string): void {
    if (!this.owners.delete(at)) return;
    if (policy === 'Orphan') for (const owners of this.owners.values()) owners.delete(at);
    for (let changed = true; changed; ) {
      changed = false;
      for (const [one, owners] of this.owners) {
        const living = [...owners].filter((owner) => this.owners.has(owner));
        if (owners.size === living.length) continue;
        changed = true;
        if (living.length === 0) this.owners.delete(one);
        else this.owners.set(one, new Set(living));
      }
    }
  }
}

test('in the end exactly the objects without existing owners are deleted, and the others refer to existing owners only', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(object, object, fc.boolean()), { maxLength: 16 }),
      fc.array(deletion, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (edges, deletions, together) => {
        await using bench = objectBench();
        const { client, registry, clock, recorder, manager, errors } = bench;
        manager.addController(garbageCollectionController({ client, registry, clock, recorder }));
        const model = new Model();
        const objects: Stored[] = [];
        for (let one = 0; one < COUNT; one += 1) {
          objects.push(await client.create(configMapKind, { metadata: { name: `o${one}` } }));
          model.owners.set(one, new Set());
        }
        for (const [one, owner, blocks] of edges) {
          if (model.owners.get(one)?.has(owner) === true) continue;
          model.owners.get(one)?.add(owner);
          const live = await client.get(configMapKind, { name: `o${one}` });
          const ownerReferences = [...(live.metadata.ownerReferences ?? []), refer(objects[owner] as Stored, blocks)];
          await client.update(configMapKind, { ...live, metadata: { ...live.metadata, ownerReferences } });
        }
        await manager.start();
        for (const { at, policy } of deletions) {
          // Orphaning races with the deletion of other owners, so only the other policies run concurrently.
          const propagationPolicy = together && policy === 'Orphan' ? 'Background' : policy;
          model.remove(at, propagationPolicy);
          if ((await client.find(configMapKind, { name: `o${at}` })) !== undefined)
            await client.delete(configMapKind, { name: `o${at}` }, { propagationPolicy });
          if (!together) await manager.idle();
        }
        await manager.idle();
        const { items } = await client.list(configMapKind);
        const left = items.map(({ metadata }) => [
          metadata.name,
          new Set(metadata.ownerReferences?.map((owner) => owner.name)),
        ]);
        const expected = [...model.owners].map(([one, owners]) => [
          `o${one}`,
          new Set([...owners].map((o) => `o${o}`)),
        ]);
        expect(new Map(left as [])).toEqual(new Map(expected as []));
        expect(errors.filter((error) => (error as { code?: string }).code !== 'Conflict')).toEqual([]);
      },
    ),
    { numRuns: runs(150) },
  );
});
