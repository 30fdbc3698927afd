import { isMap, isScalar, isSeq, type Pair, type Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { keyedEntries, type ListKeys } from './list-keys.ts';
import { entryStep, fieldStep, type OverwrittenParts } from './overwritten.ts';
import { entriesOf, entryKey, type Part, partText, samePart } from './yaml-document.ts';

export interface MergeRules {
  readonly listKeys: ListKeys;
  /** Gets the local changes that are not in the result. */
  readonly overwritten: OverwrittenParts;
}

/**
 * Merges one part of a resource three ways, as kpt does (kyaml merge3): what upstream changed from `original` to `updated` is done to
 * `local`, what it left alone stays as it is locally. Mappings and lists with keys merge entry by entry; scalars and other lists
 * become upstream's if upstream changed them. Order and comments are those of `local`, which is changed in place.
 *
 * Two rules differ from kyaml: an entry of a list that was removed locally stays removed, instead of coming back as the fragment
 * that upstream changed; and a null is a value like any other.
 */
export function mergeParts(
  local: Part,
  original: Part,
  updated: Part,
  rules: MergeRules,
  path: readonly string[] = [],
): Part {
  if (samePart(original, updated)) return local;
  const sides = [local, original, updated];
  if (sides.some(isMap) && sides.every((side) => side === undefined || isMap(side)))
    return mergeMaps(local as YAMLMap | undefined, original, updated as YAMLMap | undefined, rules, path);
  if (sides.some(isSeq) && sides.every((side) => side === undefined || isSeq(side))) {
    const merged = mergeLists(local as YAMLSeq | undefined, original, updated as YAMLSeq | undefined, rules, path);
    if (merged !== NOT_KEYED) return merged;
  }
  if (updated !== undefined && samePart(local, updated)) return local;
  if (isLost(local, original, updated)) rules.overwritten.add(local);
  if (updated === undefined) return undefined;
  // A text that was replaced keeps the comment of its line.
  return isScalar(local) && isScalar(updated) ? withComments(updated, local) : updated;
}

/** True if there is a local change, and what replaces it does not contain it. */
function isLost(local: Part, original: Part, updated: Part): boolean {
  if (local === undefined) return original !== undefined && updated !== undefined;
  if (samePart(local, original)) return false;
  const lists = [local, original, updated].map((side) =>
    side === undefined || isSeq(side) ? textsOf(side) : undefined,
  );
  const [mine, before, after] = lists;
  return mine === undefined || before === undefined || after === undefined || isLostFromList(mine, before, after);
}

/** The same for a list that is replaced as a whole, by the texts of its entries: the change is what was added, removed and moved. */
function isLostFromList(mine: readonly string[], before: readonly string[], after: readonly string[]): boolean {
  const [is, was, willBe] = [new Set(mine), new Set(before), new Set(after)];
  // Of entries that are there twice, none is the one that was added.
  if (is.size < mine.length || was.size < before.length || willBe.size < after.length) return true;
  const hasReturned = before.some((text) => !is.has(text) && willBe.has(text));
  const isMoved = mine.filter((text) => was.has(text)).join() !== before.filter((text) => is.has(text)).join();
  const added = mine.filter((text) => !was.has(text));
  return hasReturned || isMoved || added.join() !== after.filter((text) => is.has(text) && !was.has(text)).join();
}

function textsOf(list: YAMLSeq | undefined): string[] {
  return (list?.items ?? []).map((item) => partText(item as Part));
}

function mergeMaps(
  local: YAMLMap | undefined,
  original: Part,
  updated: YAMLMap | undefined,
  rules: MergeRules,
  path: readonly string[],
): Part {
  if (local === undefined && original === undefined) return updated;
  const { overwritten } = rules;
  const target = local ?? emptied(updated);
  const wasEmptied = local?.items.length === 0;
  const before = entriesOf(original);
  const after = entriesOf(updated);
  const kept: Pair[] = [];
  for (const pair of local?.items ?? []) {
    const key = entryKey(pair.key);
    const value = (pair.value ?? undefined) as Part;
    const from = overwritten.found.length;
    const merged = mergeParts(value, before.get(key), after.get(key), rules, [...path, key]);
    if (overwritten.found.length > from) overwritten.enter(from, fieldStep(key));
    if (merged === undefined) continue;
    if (merged !== value) pair.value = merged;
    kept.push(pair);
  }
  const present = new Set((local?.items ?? []).map((pair) => entryKey(pair.key)));
  const added = (updated?.items ?? []).flatMap((pair) => {
    const key = entryKey(pair.key);
    if (present.has(key)) return [];
    const from = overwritten.found.length;
    const merged = mergeParts(undefined, before.get(key), (pair.value ?? undefined) as Part, rules, [...path, key]);
    if (overwritten.found.length > from) overwritten.enter(from, fieldStep(key));
    if (merged === undefined) return [];
    pair.value = merged;
    return [pair];
  });
  target.items = inserted(kept, added, updated?.items ?? [], (pair) => entryKey(pair.key));
  // A collection that loses its last field is removed, unless upstream has it empty.
  const vanishes = target.items.length === 0 && path.length > 0 && !(updated?.items.length === 0);
  if (!vanishes) return target;
  // It was emptied locally, which is not to be absent.
  if (wasEmptied && !samePart(local, original)) overwritten.add(local);
  return undefined;
}

const NOT_KEYED = Symbol('not keyed');

function mergeLists(
  local: YAMLSeq | undefined,
  original: Part,
  updated: YAMLSeq | undefined,
  rules: MergeRules,
  path: readonly string[],
): Part | typeof NOT_KEYED {
  const { overwritten } = rules;
  const key = rules.listKeys(path);
  if (key === undefined) return NOT_KEYED;
  const [mine, before, after] = [local, original, updated].map((side) => keyedEntries(side, key));
  if (mine === undefined || before === undefined || after === undefined) return NOT_KEYED;
  if (updated === undefined) {
    if (isLost(local, original, updated)) overwritten.add(local);
    return undefined;
  }
  if (local === undefined && original === undefined) return updated;
  const identities = new Map<unknown, string>();
  const kept: Part[] = [];
  for (const [identity, item] of mine) {
    const keyFields = key === 'text' ? [] : key.flatMap(({ field }) => fieldOf(item, field));
    const from = overwritten.found.length;
    const merged = mergeParts(item, before.get(identity), after.get(identity), rules, path);
    if (overwritten.found.length > from) overwritten.enter(from, entryStep(identity));
    if (merged === undefined) continue;
    if (!after.has(identity) && isMap(merged)) {
      // Upstream deleted the entry: it stays only for what was added to it locally.
      if (merged.items.length === 0) continue;
      if (before.has(identity)) merged.items.unshift(...keyFields.filter((pair) => !merged.has(entryKey(pair.key))));
    }
    identities.set(merged, identity);
    kept.push(merged);
  }
  const added: Part[] = [];
  for (const [identity, item] of after) {
    identities.set(item, identity);
    if (!mine.has(identity) && !before.has(identity)) added.push(item);
  }
  const target = local ?? emptied(updated);
  target.items = inserted(kept, added, updated.items as Part[], (item) => identities.get(item) ?? '');
  return target.items.length === 0 && updated.items.length > 0 ? undefined : target;
}

/** Puts what upstream added behind the entry that it follows there; at the end if that one is not here. */
function inserted<Item>(
  kept: readonly Item[],
  added: readonly Item[],
  upstream: readonly Item[],
  identify: (item: Item) => string,
): Item[] {
  if (added.length === 0) return [...kept];
  const names = upstream.map(identify);
  const new_ = new Map(added.map((item) => [identify(item), item]));
  const here = new Set(kept.map(identify));
  const followers = new Map<string, Item[]>();
  const last: Item[] = [];
  let anchor: string | undefined;
  for (const name of names) {
    const item = new_.get(name);
    if (item === undefined) {
      if (here.has(name)) anchor = name;
      continue;
    }
    if (anchor === undefined) last.push(item);
    else {
      const list = followers.get(anchor) ?? [];
      list.push(item);
      followers.set(anchor, list);
    }
  }
  return [...kept.flatMap((item) => [item, ...(followers.get(identify(item)) ?? [])]), ...last];
}

function fieldOf(item: Part, field: string): Pair[] {
  return isMap(item) ? item.items.filter((pair) => entryKey(pair.key) === field) : [];
}

/** Returns an empty collection of the same type. */
function emptied<Collection extends YAMLMap | YAMLSeq>(like: Collection | undefined): Collection {
  const made = (isSeq(like) ? new YAMLSeq() : new YAMLMap()) as Collection;
  if (like?.flow !== undefined) made.flow = like.flow;
  return made;
}

function withComments(value: Scalar, place: Scalar): Scalar {
  for (const field of ['comment', 'commentBefore'] as const) {
    const comment = place[field] ?? value[field];
    if (comment !== undefined) value[field] = comment;
  }
  if (place.spaceBefore !== undefined) value.spaceBefore = place.spaceBefore;
  return value;
}
