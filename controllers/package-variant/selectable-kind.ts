import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';

/** Names a kind. */
export interface KindName {
  readonly apiVersion: string;
  readonly kind: string;
}

/** A variant or a set that names kinds. */
export interface KindHolder extends ObjectKey {
  readonly kind: string;
}

/** The kinds whose objects variants inject and sets select. */
export interface SelectableKinds extends Pick<Registry, 'kindOf' | 'kinds' | 'onChange'> {
  /**
   * In a cluster, which serves more kinds than Sluice has: replaces the kinds that a variant or a set names. They are registered, if the
   * cluster serves them, until none names them any more. Resolves once it is known of each whether the cluster serves it, and never rejects.
   * Absent where all kinds are registered.
   */
  hold?(holder: KindHolder, names: readonly KindName[]): Promise<void>;
  /** Why a kind that is named is not registered, with the next step; undefined where that is unknown. */
  problemOf?(name: KindName): string | undefined;
}

/**
 * True for a kind whose objects variants and sets may read. Their names, labels, annotations and specs get into packages, and users who may
 * write variants of a namespace need not be allowed to read its Secrets (an annotation of kubectl repeats the data), nor what is outside of it.
 */
export function isSelectable(kind: Kind): boolean {
  return kind.namespaced && !(kind.group === secretKind.group && kind.kind === secretKind.kind);
}

/** Why the objects of a kind cannot be listed in a namespace, with the next step; undefined for errors that another attempt may not have. */
export function unreadableReason(error: unknown, { group, plural }: Kind, namespace: string): string | undefined {
  const resource = group === '' ? plural : `${plural}.${group}`;
  if (isSluiceError(error, 'Refused'))
    return `Sluice may not list ${resource} in namespace ${namespace}; grant it the verbs list and watch on them: create a ClusterRole with these rules and the label ${SELECTED_OBJECTS_LABEL}: "true"`;
  return isSluiceError(error, 'Unsupported') ? `the cluster does not serve ${resource}; define the kind` : undefined;
}

/** Of ClusterRoles whose rules are added to `sluice-selected-objects`. */
const SELECTED_OBJECTS_LABEL = 'sluice.dev/aggregate-to-selected-objects';
