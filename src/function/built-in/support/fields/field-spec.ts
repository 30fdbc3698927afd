import { isMap, isScalar, isSeq, type Node } from 'yaml';
import type { FieldPath, Resource } from '../../../resource/resource.ts';
import { invalidConfig, textAt } from './function-config.ts';

/** Fields of resources of some kinds, in the form in which kustomize and the functions made of it are configured. */
export interface FieldSpec {
  /** Empty is the core group; all groups, versions, kinds if absent. */
  readonly group?: string;
  readonly version?: string;
  readonly kind?: string;
  /** Keys from the root; a list on the way means all of its items. */
  readonly path: readonly string[];
  /** Makes the field where it is missing. */
  readonly create?: boolean;
}

export function selects({ group, version, kind }: FieldSpec, resource: Resource): boolean {
  if (kind !== undefined && kind !== resource.kind) return false;
  if (group !== undefined && group !== resource.group) return false;
  return version === undefined || version === resource.apiVersion.slice(resource.apiVersion.indexOf('/') + 1);
}

/**
 * Finds the places that a path leads to in a resource; a list in the path or at its end means all of its items. With `create` it
 * includes missing places.
 */
export function placesOf(resource: Resource, path: readonly string[], create = false): FieldPath[] {
  const places: FieldPath[] = [];
  const walk = (node: Node | null | undefined, depth: number, place: FieldPath): void => {
    if (isSeq(node)) {
      for (const [at, item] of node.items.entries()) walk(item as Node | null, depth, [...place, at]);
    } else if (depth === path.length) places.push(place);
    else if (isMap(node)) {
      const key = path[depth] as string;
      const value = node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key)?.value as Node;
      if (!isMissing(value)) walk(value, depth + 1, [...place, key]);
      else if (create) places.push([...place, ...path.slice(depth)]);
    }
  };
  walk(resource.root, 0, []);
  return places;
}

function isMissing(node: Node | null | undefined): boolean {
  return node === undefined || node === null || (isScalar(node) && node.value === null);
}

/** Reads field specs of a configuration. `spec/list[]/name` is a path; `\/` is a slash in a key. */
export function fieldSpecsAt(config: Resource, field: string): FieldSpec[] {
  const node = config.node([field]);
  if (node === undefined) return [];
  if (!isSeq(node)) throw invalidConfig(config, `${field} must be a list`);
  return node.items.map((_, at) => {
    const path = textAt(config, [field, at, 'path']);
    if (path === undefined || path === '') throw invalidConfig(config, `${field}[${at}].path must name a field`);
    const [group, version, kind] = ['group', 'version', 'kind'].map(
      (key) => textAt(config, [field, at, key]) || undefined,
    );
    return {
      ...(group === undefined ? {} : { group }),
      ...(version === undefined ? {} : { version }),
      ...(kind === undefined ? {} : { kind }),
      path: keysOf(path),
      create: config.get([field, at, 'create']) === true,
    };
  });
}

/** `a/b\/c/d[]` is `a`, `b/c`, `d`. */
function keysOf(path: string): string[] {
  return path
    .split(/(?<!\\)\//)
    .map((key) => key.replace(/\[\]$/, '').replaceAll('\\/', '/'))
    .filter((key) => key !== '');
}
