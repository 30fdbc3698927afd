import type { KubeObject } from '../support/api/kube-api.ts';

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The user and the request; an empty namespace means all of them, an empty name none. */
export interface Question {
  readonly user: string;
  readonly groups: readonly string[];
  readonly verb: string;
  readonly path?: string;
  readonly group?: string;
  /** With its sub-resource, such as `pods/log`. */
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

export interface RbacState {
  readonly roles: readonly KubeObject[];
  readonly bindings: readonly KubeObject[];
}

/** RBAC in its simplest form, by exhaustive evaluation, to compare with a server's responses. */
export function mayDo({ roles, bindings }: RbacState, asked: Question): boolean {
  if (asked.groups.includes('system:masters')) return true;
  return bindings.some((binding) => {
    const namespace = binding.metadata.namespace as string | undefined;
    if (namespace !== undefined && (asked.path !== undefined || namespace !== asked.namespace)) return false;
    if (!((binding.subjects ?? []) as Subject[]).some((subject) => isMeant(subject, asked))) return false;
    const ref = binding.roleRef as { readonly kind: string; readonly name: string };
    const role = roles.find(
      ({ kind, metadata }) =>
        kind === ref.kind && metadata.name === ref.name && (kind === 'ClusterRole' || metadata.namespace === namespace),
    );
    return ((role?.rules ?? []) as Rule[]).some((rule) => allows(rule, asked));
  });
}

function isMeant({ kind, name, namespace }: Subject, { user, groups }: Question): boolean {
  if (kind === 'User') return name === user;
  if (kind === 'Group') return groups.includes(name);
  return user === `system:serviceaccount:${namespace}:${name}`;
}

function allows(rule: Rule, asked: Question): boolean {
  if (!has(rule.verbs, asked.verb)) return false;
  const { path, name = '' } = asked;
  if (path !== undefined)
    return (rule.nonResourceURLs ?? []).some((url) =>
      url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : url === path,
    );
  const names = rule.resourceNames ?? [];
  const [, sub] = (asked.resource ?? '').split('/');
  return (
    has(rule.apiGroups, asked.group ?? '') &&
    (has(rule.resources, asked.resource ?? '') || (sub !== undefined && has(rule.resources, `*/${sub}`))) &&
    (names.length === 0 || names.includes(name))
  );
}

function has(list: readonly string[] = [], wanted: string): boolean {
  return list.includes('*') || list.includes(wanted);
}
