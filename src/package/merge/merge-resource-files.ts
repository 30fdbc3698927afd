import { mergeResource, sameResource } from './merge-resource.ts';
import { type OverwrittenFields, OverwrittenParts } from './overwritten.ts';
import { type PackageFile, type PackageFiles, packageFolderOf, sameFile } from './package-files.ts';
import type { ResourceIdentity, ResourceText } from './resource-file.ts';
import type { ResourceReader } from './resource-reader.ts';
import { joinDocuments } from './split-documents.ts';

interface Sides {
  readonly local: PackageFiles;
  readonly original: PackageFiles;
  readonly updated: PackageFiles;
}

/** One resource on one side. */
interface Found {
  readonly path: string;
  readonly part: ResourceText;
  readonly resource: ResourceIdentity;
}

interface Tuple {
  local?: Found;
  original?: Found;
  updated?: Found;
}

/**
 * Merges the resources in files that changed upstream, and returns the result of each local file (undefined: removed). Local files
 * that keep a part although upstream changed or deleted it are added to `keptLocal`, local changes that are lost to `overwritten`.
 */
export function mergeResourceFiles(
  sides: Sides,
  paths: readonly string[],
  reader: ResourceReader,
  { keptLocal, overwritten }: { readonly keptLocal: Set<string>; readonly overwritten: OverwrittenFields },
): Map<string, PackageFile | undefined> {
  const texts = new Map<ResourceText, string | undefined>();
  const added = new Map<string, string[]>();
  const add = (path: string, text: string) => {
    const list = added.get(path) ?? [];
    list.push(text);
    added.set(path, list);
  };
  for (const { local: mine, original: before, updated: after } of match(sides, paths, reader)) {
    if (after === undefined) {
      if (mine === undefined || before === undefined) continue;
      if (sameResource(mine.part.text, before.part.text)) texts.set(mine.part, undefined);
      else keptLocal.add(mine.path);
    } else if (mine === undefined) {
      if (before === undefined) add(after.path, after.part.text);
    } else {
      const lost = new OverwrittenParts();
      const merged = mergeResource(mine.resource, mine.part.text, before?.part.text, after.part.text, lost);
      if (merged === undefined) keptLocal.add(mine.path);
      else if (lost.total > 0) overwritten.add(mine.path, mine.resource, lost);
      const text = merged ?? mine.part.text;
      const moved = before !== undefined && before.path === mine.path && after.path !== before.path;
      texts.set(mine.part, moved ? undefined : text);
      if (moved) add(after.path, text);
    }
  }
  return written(sides, texts, added, reader);
}

/** Resources of all sides, those that are the same one together. */
function match(sides: Sides, paths: readonly string[], reader: ResourceReader): Iterable<Tuple> {
  const original = resourcesOf(sides.original, paths, reader);
  const updated = resourcesOf(sides.updated, paths, reader);
  let local = resourcesOf(sides.local, paths, reader);
  const known = new Set(local.map(({ resource }) => identityText(resource)));
  const missing = [...original, ...updated].filter(({ resource }) => !known.has(identityText(resource)));
  // They may have been moved to other files locally.
  if (missing.length > 0) local = [...local, ...resourcesOf(sides.local, elsewhere(sides, missing), reader)];

  const found = { local, original, updated };
  const ambiguous = new Set<string>();
  const keys = new Map<Found, string>();
  for (const side of ['local', 'original', 'updated'] as const) {
    const seen = new Set<string>();
    for (const one of found[side]) {
      const key = `${packageFolderOf(sides[side], one.path)} ${identityText(one.resource)}`;
      if (seen.has(key)) ambiguous.add(key);
      seen.add(key);
      keys.set(one, key);
    }
  }
  const tuples = new Map<string, Tuple>();
  for (const side of ['original', 'updated', 'local'] as const) {
    const counts = new Map<string, number>();
    for (const one of found[side]) {
      let key = keys.get(one) ?? '';
      if (ambiguous.has(key)) {
        // Several resources of one name are distinguished by their position.
        key = `${key} ${one.path}`;
        const count = counts.get(key) ?? 0;
        counts.set(key, count + 1);
        key = `${key} ${count}`;
      }
      const tuple = tuples.get(key) ?? {};
      tuple[side] = one;
      tuples.set(key, tuple);
    }
  }
  return tuples.values();
}

function resourcesOf(files: PackageFiles, paths: readonly string[], reader: ResourceReader): Found[] {
  return paths.flatMap((path) => {
    const file = files.get(path);
    const parts = file === undefined ? [] : (reader.resources(file) ?? []);
    return parts.flatMap((part) => (part.resource === undefined ? [] : [{ path, part, resource: part.resource }]));
  });
}

/** Matches possible names of resources in the text of a file. */
const NAMES = /(?:\bname["']?:[ \t]*["']?|kpt-merge:[^\n/]{0,300}\/)([^\s"',}]+)/g;

/** Returns other local files that may contain one of these resources. */
function elsewhere({ local, original, updated }: Sides, missing: readonly Found[]): string[] {
  const names = new Set(missing.map(({ resource }) => resource.name));
  return [...local].flatMap(([path, { data }]) => {
    // Files that changed upstream were handled, or merge as a whole.
    if (!/\.ya?ml$/.test(path) || !sameFile(original.get(path), updated.get(path))) return [];
    return [...data.toString('utf8').matchAll(NAMES)].some(([, name = '']) => names.has(name)) ? [path] : [];
  });
}

function identityText({ group, kind, namespace, name }: ResourceIdentity): string {
  // A resource without a namespace means this one.
  return JSON.stringify([group, kind, namespace || 'default', name]);
}

function written(
  { local, original, updated }: Sides,
  texts: ReadonlyMap<ResourceText, string | undefined>,
  added: ReadonlyMap<string, readonly string[]>,
  reader: ResourceReader,
): Map<string, PackageFile | undefined> {
  const result = new Map<string, PackageFile | undefined>();
  const touched = new Set(added.keys());
  for (const [path, file] of local) {
    if (reader.known(file)?.some((part) => texts.has(part))) touched.add(path);
  }
  for (const path of touched) {
    const mine = local.get(path);
    const upstream = updated.get(path);
    const parts = (mine === undefined ? undefined : reader.known(mine)) ?? [];
    const texted = parts.map((part) => ({ part, text: texts.has(part) ? texts.get(part) : part.text }));
    const resources = texted.flatMap(({ part, text }) => (part.resource === undefined ? [] : (text ?? [])));
    for (const resource of added.get(path) ?? []) resources.push(resource);
    const lines = resources.length === 0 ? [] : texted.flatMap(({ text }) => text ?? []);
    const data = Buffer.from(joinDocuments([...lines, ...(added.get(path) ?? [])]));
    if (resources.length === 0) result.set(path, undefined);
    else if (upstream !== undefined && sameFile(mine, original.get(path)) && isAllOf(reader.known(upstream), resources))
      result.set(path, upstream);
    else if (mine?.data.equals(data) !== true) result.set(path, { ...(mine ?? upstream), data });
  }
  return result;
}

/** True if the resources are exactly those of a file. */
function isAllOf(parts: readonly ResourceText[] = [], resources: readonly string[]): boolean {
  const all = parts.flatMap(({ resource, text }) => (resource === undefined ? [] : [text]));
  return all.length === resources.length && all.sort().join('\0') === [...resources].sort().join('\0');
}
