import type { Oid } from '../git-repository.ts';
import type { ObjectSource } from './object-source.ts';
import { targetOfTag } from './tag-codec.ts';

/** Resolves refs at annotated tags to the final object. Skips other refs and unreadable tags. */
export async function peelTags(
  source: ObjectSource,
  refs: ReadonlyMap<string, Oid | null>,
): Promise<ReadonlyMap<string, Oid>> {
  const peeled = new Map<string, Oid>();
  let waiting = [...refs].flatMap(([ref, oid]) => (oid === null ? [] : [{ ref, oid }]));
  while (waiting.length > 0) {
    const stats = await source.statObjects(waiting.map(({ oid }) => oid));
    const tags = waiting.filter((_, index) => stats[index]?.type === 'tag');
    const objects = await source.readObjects(tags.map(({ oid }) => oid));
    waiting = tags.flatMap(({ ref }, index) => {
      const target = targetOfTag(objects[index]?.data ?? new Uint8Array());
      if (target === undefined) return [];
      peeled.set(ref, target);
      return [{ ref, oid: target }];
    });
  }
  return peeled;
}
