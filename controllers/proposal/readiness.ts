import type { Gate } from '../../src/package/model/gates/gates.ts';
import { type LifecycleStep, rejectionOf } from '../../src/package/model/record/record.ts';
import { lifecycleAnnotation } from '../../src/package/model/revision/lifecycle-annotations.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';

/** Names of the resolvers that apply to a package. */
export type ApplicableResolvers = (evaluation: RevisionEvaluation) => readonly string[];

/** The reason why a controller must not propose or approve a revision. */
export interface Obstacle {
  readonly reason:
    | 'NotSettled'
    | 'Unreadable'
    | 'SameAsSource'
    | 'Rejected'
    | 'Invalid'
    | 'Conflicted'
    | 'PublishedSince'
    | 'GatesClosed';
  /** One sentence for users, with the next step where there is one. */
  readonly message: string;
}

/**
 * Returns why a controller must not propose or approve a revision; undefined if it may. Controllers need more than the kernel
 * requires, since they cannot inspect a package as a person does: gates must be open also in repositories that do not enforce them,
 * the resolvers must have reported on the current content, the content must differ from the published revision that it was copied
 * from, and the content must not have been rejected before.
 */
export function obstacleTo(
  evaluation: RevisionEvaluation,
  isRequired: (gate: Gate) => boolean,
  applicable: ApplicableResolvers = () => [],
  needsReport: (applicable: readonly string[]) => boolean = () => true,
): Obstacle | undefined {
  const { revision, record, content } = evaluation;
  if (revision.problem !== undefined) {
    return { reason: 'Unreadable', message: `the Kptfile cannot be read: ${revision.problem}` };
  }
  const { settled } = record;
  // A resolver that was added later must report too.
  const hasReported =
    settled?.content === content.content && applicable(evaluation).every((name) => settled.resolvers.includes(name));
  if (!hasReported && needsReport(applicable(evaluation))) {
    const early =
      'it was proposed before every resolver had reported on this content; reject it so that they can, or approve it by hand';
    const message = revision.lifecycle === 'Draft' ? 'not every resolver has reported on this content yet' : early;
    return { reason: 'NotSettled', message };
  }
  if (record.source?.content === content.content) {
    const message = `the content is still that of ${record.source.name}, which is published; change it first`;
    return { reason: 'SameAsSource', message };
  }
  const rejection = rejectionOf(record, { commit: revision.commit, content: content.content });
  if (rejection !== undefined) return { reason: 'Rejected', message: rejectionMessage(rejection) };
  const { invalid, conflict, overtaken } = evaluation;
  if (invalid !== undefined) return { reason: 'Invalid', message: invalid.message };
  if (conflict !== undefined) return { reason: 'Conflicted', message: conflict.message };
  if (overtaken !== undefined) return { reason: 'PublishedSince', message: overtaken.message };
  const closed = evaluation.gates.filter((gate) => gate.state !== 'Open' && isRequired(gate));
  if (closed.length === 0) return undefined;
  const list = closed.map((gate) => `${gate.type}: ${gate.explanation}`);
  return { reason: 'GatesClosed', message: `closed gates: ${list.join('; ')}` };
}

/** Returns why controllers do not act on a rejected revision, with the next step. */
export function rejectionMessage({ by, reason }: LifecycleStep): string {
  return `${by} rejected this content${reason === undefined ? '' : ` (${reason})`}; change it, or propose it by hand`;
}

/** An annotation of the revision object, else, where a policy enables Kptfile annotations, of its Kptfile. */
export function annotationOf(
  { metadata, spec }: PackageRevision,
  key: string,
  policy: { readonly kptfileApprovals: boolean },
): string | undefined {
  return lifecycleAnnotation(key, { own: metadata.annotations, kptfile: spec.packageMetadata?.annotations }, policy);
}

/** Drafts and proposed revisions that are not being deleted. */
export function isPending({ metadata, spec }: PackageRevision): boolean {
  return (spec.lifecycle === 'Draft' || spec.lifecycle === 'Proposed') && metadata.deletionTimestamp === undefined;
}
