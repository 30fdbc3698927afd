import { keyOf, keyText } from '../../resource/object/object.ts';
import { labelSelector, matchesLabels } from '../../resource/selector/label-selector.ts';
import type { User } from '../authentication/user.ts';
import type { ClusterRole, PolicyRule, RbacKind, Role, RoleBinding, RoleRef, Subject } from './rbac-objects.ts';

/** The rules that one binding grants to a user; `rules` is undefined if the role does not exist. */
export interface Grant {
  readonly binding: RoleBinding;
  readonly subject: Subject;
  readonly rules: readonly PolicyRule[] | undefined;
}

/** Grants without rules, by subject and binding. */
type EntriesBySubject = Map<string, Map<string, Omit<Grant, 'rules'>>>;

/**
 * The RBAC objects, indexed so that the bindings of one user are found without reading all others. Objects are added one by one; an
 * invalid one never throws and grants nothing.
 */
export class RbacIndex {
  readonly #roles = new Map<string, Role>();
  readonly #clusterRoles = new Map<string, ClusterRole>();
  readonly #bindings = new Map<string, RoleBinding>();
  /** By namespace; empty for bindings of the whole cluster. */
  readonly #entries = new Map<string, EntriesBySubject>();
  /** Rules of aggregating roles; they depend on all cluster roles, so any change of one empties this. */
  readonly #aggregated = new Map<string, readonly PolicyRule[]>();

  put(kind: RbacKind, object: Role | ClusterRole | RoleBinding): void {
    const key = keyText(keyOf(object));
    if (kind === 'Role') this.#roles.set(key, object);
    else if (kind === 'ClusterRole') {
      this.#clusterRoles.set(key, object);
      this.#aggregated.clear();
    } else {
      this.#removeBinding(kind, key);
      this.#addBinding(kind, key, object as RoleBinding);
    }
  }

  remove(kind: RbacKind, object: { readonly metadata: RoleBinding['metadata'] }): void {
    const key = keyText(keyOf(object));
    if (kind === 'Role') this.#roles.delete(key);
    else if (kind === 'ClusterRole') {
      this.#clusterRoles.delete(key);
      this.#aggregated.clear();
    } else this.#removeBinding(kind, key);
  }

  /** Yields the grants of a user in a namespace; without a namespace (`''`) only those of cluster role bindings. */
  *grants(user: User, namespace: string): Generator<Grant> {
    const subjects = [userSubject(user.name), ...user.groups.map(groupSubject)];
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      const bySubject = this.#entries.get(scope);
      if (bySubject === undefined) continue;
      for (const subject of subjects)
        for (const entry of bySubject.get(subject)?.values() ?? [])
          yield { ...entry, rules: this.rulesOf(entry.binding.roleRef, scope) };
    }
  }

  /** The rules of a role that a binding in this namespace (`''`: of the whole cluster) refers to; undefined if it does not exist. */
  rulesOf(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    if (roleRef.kind === 'Role') {
      const role = namespace === '' ? undefined : this.#roles.get(keyText({ namespace, name: roleRef.name }));
      return role === undefined ? undefined : (role.rules ?? []);
    }
    const role = roleRef.kind === 'ClusterRole' ? this.#clusterRoles.get(roleRef.name) : undefined;
    if (role === undefined) return undefined;
    if (!isAggregating(role)) return role.rules ?? [];
    let rules = this.#aggregated.get(roleRef.name);
    if (rules === undefined) {
      rules = this.#aggregate(role);
      this.#aggregated.set(roleRef.name, rules);
    }
    return rules;
  }

  /**
   * The rules of all roles that an aggregating role selects, and of those that they select in turn. What the role itself
   * lists does not count: in Kubernetes a controller overwrites it.
   */
  #aggregate(role: ClusterRole): readonly PolicyRule[] {
    const seen = new Set<ClusterRole>([role]);
    const rules = new Set<PolicyRule>();
    for (const aggregating of seen) {
      const selects = selectorsOf(aggregating);
      for (const other of this.#clusterRoles.values()) {
        if (seen.has(other) || !selects(other)) continue;
        if (isAggregating(other)) seen.add(other);
        else for (const rule of other.rules ?? []) rules.add(rule);
      }
    }
    return [...rules];
  }

  #addBinding(kind: 'RoleBinding' | 'ClusterRoleBinding', key: string, binding: RoleBinding): void {
    const scope = scopeOf(kind, binding);
    if (scope === undefined) return;
    const id = `${kind} ${key}`;
    this.#bindings.set(id, binding);
    const bySubject: EntriesBySubject = this.#entries.get(scope) ?? new Map();
    for (const subject of binding.subjects ?? []) {
      const subjectKey = keyOfSubject(subject, scope);
      if (subjectKey === undefined) continue;
      const entries = bySubject.get(subjectKey) ?? new Map();
      bySubject.set(subjectKey, entries.set(id, { binding, subject }));
    }
    if (bySubject.size > 0) this.#entries.set(scope, bySubject);
  }

  #removeBinding(kind: 'RoleBinding' | 'ClusterRoleBinding', key: string): void {
    const id = `${kind} ${key}`;
    const binding = this.#bindings.get(id);
    const scope = binding === undefined ? undefined : scopeOf(kind, binding);
    if (binding === undefined || scope === undefined) return;
    this.#bindings.delete(id);
    const bySubject = this.#entries.get(scope);
    for (const subject of binding.subjects ?? []) {
      const subjectKey = keyOfSubject(subject, scope);
      const entries = subjectKey === undefined ? undefined : bySubject?.get(subjectKey);
      if (subjectKey === undefined || entries === undefined) continue;
      entries.delete(id);
      if (entries.size === 0) bySubject?.delete(subjectKey);
    }
    if (bySubject?.size === 0) this.#entries.delete(scope);
  }
}

/** The scope of a binding. Undefined is nowhere: a RoleBinding without a namespace must not apply everywhere. */
function scopeOf(kind: 'RoleBinding' | 'ClusterRoleBinding', binding: RoleBinding): string | undefined {
  return kind === 'ClusterRoleBinding' ? '' : binding.metadata.namespace || undefined;
}

function isAggregating(role: ClusterRole): boolean {
  return (role.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
}

/** An invalid selector selects nothing; other selectors still apply. */
function selectorsOf(role: ClusterRole): (other: ClusterRole) => boolean {
  const selectors = (role.aggregationRule?.clusterRoleSelectors ?? []).flatMap((selector) => {
    try {
      return [labelSelector(selector)];
    } catch {
      return [];
    }
  });
  return (other) => selectors.some((selector) => matchesLabels(selector, other.metadata.labels));
}

function userSubject(name: string): string {
  return `user ${name}`;
}

function groupSubject(name: string): string {
  return `group ${name}`;
}

/** Undefined for a subject that matches no user. */
function keyOfSubject({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  if (kind === 'User') return userSubject(name);
  if (kind === 'Group') return groupSubject(name);
  const home = namespace === undefined || namespace === '' ? bindingNamespace : namespace;
  if (kind !== 'ServiceAccount' || home === '') return undefined;
  return userSubject(`system:serviceaccount:${home}:${name}`);
}
