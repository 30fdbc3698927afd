import { isScalar } from 'yaml';
import type { KptFunction, Selector } from '../../../kptfile-schema/index.ts';
import type { Resource } from './resource.ts';

/** True if a function does not get all resources. */
export function isSelective({ selectors = [], exclude = [] }: KptFunction): boolean {
  return selectors.length > 0 || exclude.length > 0;
}

/** The resources that a function gets: those that one of its selectors matches, all if it has none, without the excluded ones. */
export function selectResources(
  { selectors = [], exclude = [] }: KptFunction,
  resources: readonly Resource[],
): Resource[] {
  // As in kpt, an empty exclusion excludes nothing.
  const exclusions = exclude.filter((selector) => Object.values(selector).some(hasCriteria));
  return resources.filter(
    (resource) =>
      (selectors.length === 0 || selectors.some((selector) => isMatch(resource, selector))) &&
      !exclusions.some((selector) => isMatch(resource, selector)),
  );
}

/**
 * Merges the output of a function that got only some resources: the others stay, changed ones keep their place, new ones are
 * appended.
 */
export function mergeSelection(
  all: readonly Resource[],
  selected: readonly Resource[],
  output: readonly Resource[],
): Resource[] {
  const successors = successorsOf(selected, output);
  const sent = new Set(selected);
  const merged = all.flatMap((resource) => {
    if (!sent.has(resource)) return [resource];
    const successor = successors.get(resource);
    return successor === undefined ? [] : [successor];
  });
  const used = new Set(successors.values());
  return [...merged, ...output.filter((resource) => !used.has(resource))];
}

/** Returns the resulting resource for each input resource; those that a function removed are missing. */
function successorsOf(selected: readonly Resource[], output: readonly Resource[]): Map<Resource, Resource> {
  const same = new Set(output);
  const byOrigin = new Map<string, Resource>();
  for (const resource of output) {
    const key = originOf(resource);
    if (key !== undefined && !byOrigin.has(key)) byOrigin.set(key, resource);
  }
  const successors = new Map<Resource, Resource>();
  for (const resource of selected) {
    const key = originOf(resource);
    const successor = same.has(resource) ? resource : key === undefined ? undefined : byOrigin.get(key);
    if (successor !== undefined) successors.set(resource, successor);
  }
  return successors;
}

/** The place of a resource when the package was read, as one text. */
export function originOf({ origin }: Resource): string | undefined {
  return origin === undefined ? undefined : `${origin.file}\0${origin.index}`;
}

function isMatch(resource: Resource, selector: Selector): boolean {
  const { apiVersion, kind, name, namespace, labels, annotations } = selector;
  return (
    matches(apiVersion, resource.apiVersion) &&
    matches(kind, resource.kind) &&
    matches(name, resource.name) &&
    matches(namespace, resource.namespace ?? '') &&
    hasAll(resource, 'labels', labels) &&
    hasAll(resource, 'annotations', annotations)
  );
}

function hasAll(resource: Resource, field: string, wanted: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => {
    const node = resource.node(['metadata', field, key]);
    return isScalar(node) && String(node.value ?? '') === value;
  });
}

function matches(wanted: string | undefined, value: string): boolean {
  return wanted === undefined || wanted === '' || wanted === value;
}

function hasCriteria(value: unknown): boolean {
  return typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== '';
}
