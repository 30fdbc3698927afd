import type { RequestAttributes } from './authorizer.ts';
import type { PolicyRule } from './rbac-objects.ts';

const ALL = '*';

/** True if one of the rules allows the request; where the rules apply is decided elsewhere. */
export function allows(rules: readonly PolicyRule[], attributes: RequestAttributes): boolean {
  return rules.some((rule) => ruleAllows(rule, attributes));
}

function ruleAllows(rule: PolicyRule, attributes: RequestAttributes): boolean {
  const { resources, resourceNames, nonResourceURLs } = rule;
  if (!lists(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResource) return nonResourceURLs?.some((pattern) => pathMatches(pattern, attributes.path)) ?? false;
  return (
    lists(rule.apiGroups, attributes.group) &&
    (resources?.some((pattern) => resourceMatches(pattern, attributes.resource, attributes.subResource)) ?? false) &&
    (resourceNames === undefined || resourceNames.length === 0 || resourceNames.includes(attributes.name))
  );
}

function lists(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes(wanted) || values.includes(ALL));
}

/** `*` is every resource and sub-resource, `*` + `/scale` that sub-resource of all resources. */
export function resourceMatches(pattern: string, resource: string, subResource: string): boolean {
  if (pattern === ALL) return true;
  if (subResource === '') return pattern === resource;
  return pattern === `${resource}/${subResource}` || pattern === `${ALL}/${subResource}`;
}

/** A star counts at the end only. */
export function pathMatches(pattern: string, path: string): boolean {
  return pattern === path || (pattern.endsWith(ALL) && path.startsWith(pattern.slice(0, -1)));
}
