import type { NewCondition } from '../../src/resource/object/condition.ts';
import type { ContentReport } from './namespace-content.ts';

/** Finalizers and kinds that a message names. */
const MAX_REPORTED = 20;

/** The conditions of a namespace that is being emptied, with the types and reasons of Kubernetes. */
export function namespaceConditions({ remaining, finalizers, failures }: ContentReport): NewCondition[] {
  return [
    condition(
      'NamespaceDeletionContentFailure',
      failures.length > 0,
      ['ContentDeletionFailed', `Failed to delete: ${failures.join('; ')}`],
      ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    ),
    condition(
      'NamespaceContentRemaining',
      remaining.size > 0,
      ['SomeResourcesRemain', `Some resources are remaining: ${counted(remaining, 'has')}`],
      ['ContentRemoved', 'All content successfully removed'],
    ),
    condition(
      'NamespaceFinalizersRemaining',
      finalizers.size > 0,
      ['SomeFinalizersRemain', `Some content in the namespace has finalizers remaining: ${counted(finalizers, 'in')}`],
      ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    ),
  ];
}

function condition(
  type: string,
  holds: boolean,
  yes: readonly [string, string],
  no: readonly [string, string],
): NewCondition {
  const [reason, message] = holds ? yes : no;
  return { type, status: holds ? 'True' : 'False', reason, message };
}

/** `widgets.example.org has 2 resource instances, …` */
function counted(counts: ReadonlyMap<string, number>, word: string): string {
  const parts = [...counts].sort().map(([name, number]) => `${name} ${word} ${number} resource instances`);
  return [...parts.slice(0, MAX_REPORTED), ...(parts.length > MAX_REPORTED ? ['…'] : [])].join(', ');
}
