import type { RequestAttributes } from './authorizer.ts';
import type { PolicyRule } from './rbac-objects.ts';

const ALL = '*';

/** True if one of the rules allows the request, wherever and to whomever the rules are given. */
export function allows(rules: readonly PolicyRule[], attributes: RequestAttributes): boolean {
  return rules.some((rule) => ruleAllows(rule, attributes));
}

function ruleAllows(rule: PolicyRule, asked: RequestAttributes): boolean {
  const { resources, resourceNames, nonResourceURLs } = rule;
  if (!lists(rule.verbs, asked.verb)) return false;
  if (!asked.isResource) return nonResourceURLs?.some((pattern) => pathMatches(pattern, asked.path)) ?? false;
  return (
    lists(rule.apiGroups, asked.group) &&
    (resources?.some((pattern) => resourceMatches(pattern, asked.resource, asked.subResource)) ?? false) &&
    (resourceNames === undefined || resourceNames.length === 0 || resourceNames.includes(asked.name))
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
