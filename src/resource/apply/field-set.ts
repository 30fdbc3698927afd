import { type FieldElement, showElement } from './field-element.ts';

/**
 * A set of field paths, as an immutable tree. A node represents a path; `owned` states whether that path itself is in the
 * set, independent of the paths below it. No child is empty. The operations share unchanged parts, and return their first
 * argument itself if nothing changes.
 */
export interface FieldSet {
  readonly owned: boolean;
  readonly children: ReadonlyMap<FieldElement, FieldSet>;
}

const NO_CHILDREN: FieldSet['children'] = new Map();
export const NO_FIELDS: FieldSet = { owned: false, children: NO_CHILDREN };
/** A path without children. */
export const LEAF: FieldSet = { owned: true, children: NO_CHILDREN };

export function fieldSet(owned: boolean, children: FieldSet['children']): FieldSet {
  if (children.size > 0) return { owned, children };
  return owned ? LEAF : NO_FIELDS;
}

export function isEmpty(set: FieldSet): boolean {
  return !set.owned && set.children.size === 0;
}

/** The paths that are in either. */
export function union(left: FieldSet, right: FieldSet): FieldSet {
  if (left === right) return left;
  let children: Map<FieldElement, FieldSet> | undefined;
  for (const [element, theirs] of right.children) {
    const ours = left.children.get(element);
    const both = ours === undefined ? theirs : union(ours, theirs);
    if (both === ours) continue;
    children ??= new Map(left.children);
    children.set(element, both);
  }
  if (children === undefined && (left.owned || !right.owned)) return left;
  return fieldSet(left.owned || right.owned, children ?? left.children);
}

/**
 * Returns the paths that are in `left` and not in `right`. A path stays if only paths above or below it are removed.
 */
export function difference(left: FieldSet, right: FieldSet): FieldSet {
  if (left === right) return NO_FIELDS;
  let children: Map<FieldElement, FieldSet> | undefined;
  for (const [element, theirs] of right.children) {
    const ours = left.children.get(element);
    if (ours === undefined) continue;
    const rest = difference(ours, theirs);
    if (rest === ours) continue;
    children ??= new Map(left.children);
    if (isEmpty(rest)) children.delete(element);
    else children.set(element, rest);
  }
  if (children === undefined && !(left.owned && right.owned)) return left;
  return fieldSet(left.owned && !right.owned, children ?? left.children);
}

/** The paths that are in both. */
export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  if (left === right) return left;
  const children = new Map<FieldElement, FieldSet>();
  for (const [element, theirs] of right.children) {
    const ours = left.children.get(element);
    if (ours === undefined) continue;
    const both = intersection(ours, theirs);
    if (!isEmpty(both)) children.set(element, both);
  }
  return fieldSet(left.owned && right.owned, children);
}

/** True if both contain the same paths. */
export function sameFields(left: FieldSet, right: FieldSet): boolean {
  if (left === right) return true;
  if (left.owned !== right.owned || left.children.size !== right.children.size) return false;
  for (const [element, ours] of left.children) {
    const theirs = right.children.get(element);
    if (theirs === undefined || !sameFields(ours, theirs)) return false;
  }
  return true;
}

/** Formats all paths for messages, such as `.spec.ports[name="web"].port`, sorted, with a path before its children. */
export function showPaths(set: FieldSet, prefix = ''): string[] {
  const paths = set.owned ? [prefix] : [];
  for (const element of sortedElements(set))
    paths.push(...showPaths(set.children.get(element) ?? NO_FIELDS, prefix + showElement(element)));
  return paths;
}

export function sortedElements(set: FieldSet): FieldElement[] {
  return [...set.children.keys()].sort();
}
