import { SluiceError } from '../../foundation/sluice-error.ts';
import { type FieldSet, showPaths } from './field-set.ts';
import type { Owner } from './owners.ts';

/** A field that an apply would change and that another manager owns. */
export interface ConflictCause {
  readonly reason: 'FieldManagerConflict';
  /** `conflict with "kubectl-client-side-apply" using v1`. */
  readonly message: string;
  /** `.data.color`. */
  readonly field: string;
}

export interface ApplyConflictDetails {
  readonly causes: readonly ConflictCause[];
}

export interface Conflict {
  readonly owner: Owner;
  /** Fields that the owner would lose. */
  readonly fields: FieldSet;
}

/** The Conflict of an apply that is not forced, in the words of Kubernetes. */
export function applyConflict(conflicts: readonly Conflict[]): SluiceError<ApplyConflictDetails> {
  const byOwner = conflicts
    .map(({ owner, fields }) => ({ shown: showOwner(owner), paths: showPaths(fields) }))
    .sort((left, right) => (left.shown < right.shown ? -1 : 1));
  const causes = byOwner.flatMap(({ shown, paths }) =>
    paths.map((field): ConflictCause => ({ reason: 'FieldManagerConflict', message: `conflict with ${shown}`, field })),
  );
  return new SluiceError('Conflict', messageFor(byOwner, causes), { details: { causes } });
}

function messageFor(
  byOwner: readonly { readonly shown: string; readonly paths: readonly string[] }[],
  causes: readonly ConflictCause[],
): string {
  const [only] = causes;
  if (causes.length === 1 && only !== undefined) return `Apply failed with 1 conflict: ${only.message}: ${only.field}`;
  const lines = byOwner.flatMap(({ shown, paths }) => [
    `conflicts with ${shown}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`;
}

function showOwner({ manager, operation, apiVersion, subresource }: Owner): string {
  const where = subresource === undefined ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${where}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
