import { pathMatches, resourceMatches } from './allows.ts';
import type { PolicyRule } from './rbac-objects.ts';

const ALL = '*';
const NONE: readonly string[] = [];

/** Maximum number of compared pairs of values; keeps a comparison of hostile roles well below a second. */
const MAX_COMPARISONS = 20_000_000;

/** The wanted rules that are not granted; `undefined` if they are too many to be compared. */
export type MissingRules = readonly PolicyRule[] | undefined;

/**
 * Compares the permissions of rules. A rule that one granted rule covers entirely is granted; all others are split into single
 * permissions (one verb, group, resource and name, or one verb and path), each of which must be covered by one granted rule. Each rule
 * of the result has one resource or path and all verbs that are missing for it.
 */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): MissingRules {
  if (wanted.length === 0 || isUnlimited(held)) return [];
  const heldSize = sum(held, valueCount);
  if (sum(wanted, valueCount) * heldSize > MAX_COMPARISONS) return undefined;
  const uncovered = wanted.filter((rule) => !held.some((other) => covers(other, rule)));
  if (sum(uncovered, permissionCount) * Math.max(1, heldSize) > MAX_COMPARISONS) return undefined;
  const missing = new Map<string, PolicyRule & { readonly verbs: string[] }>();
  for (const rule of uncovered)
    for (const { verb, ...place } of permissionsOf(rule)) {
      if (held.some((other) => covers(other, { ...place, verbs: [verb] }))) continue;
      const id = JSON.stringify(place);
      const entry = missing.get(id);
      if (entry === undefined) missing.set(id, { ...place, verbs: [verb] });
      else if (!entry.verbs.includes(verb)) entry.verbs.push(verb);
    }
  return [...missing.values()];
}

/** The form in which Kubernetes shows a rule: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`. */
export function ruleText(rule: PolicyRule): string {
  const parts: [string, readonly string[] | undefined][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ];
  const shown = parts.filter(([, values]) => (values?.length ?? 0) > 0);
  return `{${shown.map(([name, values]) => `${name}:${listText(values ?? [])}`).join(', ')}}`;
}

/** `["a" "b"]`. */
export function listText(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
}

/** True if one rule allows everything that the other allows. A rule without names covers all names. */
function covers(held: PolicyRule, wanted: PolicyRule): boolean {
  const { resourceNames: heldNames = NONE } = held;
  const { resourceNames: wantedNames = NONE } = wanted;
  return (
    contains(held.verbs, wanted.verbs) &&
    contains(held.apiGroups, wanted.apiGroups) &&
    coversResources(held.resources, wanted.resources) &&
    (heldNames.length === 0 || (wantedNames.length > 0 && wantedNames.every((name) => heldNames.includes(name)))) &&
    (wanted.nonResourceURLs ?? NONE).every((path) => held.nonResourceURLs?.some((own) => pathMatches(own, path)))
  );
}

function contains(held: readonly string[] | undefined, wanted: readonly string[] = NONE): boolean {
  return held?.includes(ALL) || wanted.every((value) => held?.includes(value));
}

function coversResources(held: readonly string[] | undefined, wanted: readonly string[] = NONE): boolean {
  return wanted.every((pattern) => {
    const slash = pattern.indexOf('/');
    const [resource, subResource] = slash < 0 ? [pattern, ''] : [pattern.slice(0, slash), pattern.slice(slash + 1)];
    return held?.some((own) => resourceMatches(own, resource, subResource));
  });
}

/** True if one of the rules allows every verb on every resource, and one every verb on every path. */
function isUnlimited(rules: readonly PolicyRule[]): boolean {
  const all = (values: readonly string[] | undefined) => values?.includes(ALL);
  return (
    rules.some(
      (rule) => all(rule.verbs) && all(rule.apiGroups) && all(rule.resources) && !rule.resourceNames?.length,
    ) && rules.some((rule) => all(rule.verbs) && all(rule.nonResourceURLs))
  );
}

function sum(rules: readonly PolicyRule[], count: (rule: PolicyRule) => number): number {
  return rules.reduce((total, rule) => total + count(rule), 0);
}

function valueCount({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  const lists = [verbs, apiGroups, resources, resourceNames, nonResourceURLs];
  return lists.reduce((total, values) => total + (values?.length ?? 0), 0);
}

function permissionCount({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  const names = Math.max(1, resourceNames?.length ?? 0);
  return verbs.length * ((apiGroups?.length ?? 0) * (resources?.length ?? 0) * names + (nonResourceURLs?.length ?? 0));
}

type Permission = Omit<PolicyRule, 'verbs'> & { readonly verb: string };

function* permissionsOf(rule: PolicyRule): Generator<Permission> {
  const { resourceNames = NONE, nonResourceURLs = NONE } = rule;
  const names = resourceNames.length === 0 ? [{}] : resourceNames.map((name) => ({ resourceNames: [name] }));
  for (const verb of rule.verbs) {
    for (const group of rule.apiGroups ?? NONE)
      for (const resource of rule.resources ?? NONE)
        for (const name of names) yield { verb, apiGroups: [group], resources: [resource], ...name };
    for (const path of nonResourceURLs) yield { verb, nonResourceURLs: [path] };
  }
}
