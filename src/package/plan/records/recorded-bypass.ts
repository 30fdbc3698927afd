import type { PublicationFlaw } from '../../kernel/publication.ts';
import { REVIEW_ACTOR } from '../../model/policy/review-policy.ts';
import type { LifecycleStep } from '../../model/record/record.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';

/** Flaws of a publication that records a bypass. */
const BYPASSED: ReadonlySet<string> = new Set<PublicationFlaw>([
  'GateUnmet',
  'NotApproved',
  'ChangesRequested',
  'ForeignFiles',
]);

/** In place of a user of Sluice, where the user of the host who merged is none. */
const HOST_USER = 'the Git host';

/** False for a publication that has another flaw than that its statement lists a bypass. */
export function isAtMostBypass({ outOfBand }: Pick<PackageRevision, 'outOfBand'>): boolean {
  return outOfBand === undefined || BYPASSED.has(outOfBand.reason);
}

/**
 * The merge of the Git host that a publication records as a bypass: in whose name, and with who merged what as its reason, also once an operator has
 * adopted it. The index does not verify a statement that lists a flaw, which any user who may push can forge; so it is verified here.
 */
export async function recordedBypass(
  { outOfBand, tip: { facts } }: Pick<PackageRevision, 'outOfBand' | 'tip'>,
  trust: Pick<RepositoryTrust, 'distrustOfSigner' | 'revocationOf' | 'signerOf'>,
): Promise<LifecycleStep | undefined> {
  const { statement } = facts;
  if (!isAtMostBypass({ outOfBand })) return undefined;
  if (statement?.statement.record.mergeBypass === undefined) return undefined;
  const signer = await trust.signerOf(statement);
  if (trust.distrustOfSigner(signer) !== undefined || trust.revocationOf(signer) !== undefined) return undefined;
  const step = statement.statement.record.steps.findLast(({ action }) => action === 'approve');
  return step && { ...step, action: 'merge', by: step.by === REVIEW_ACTOR ? HOST_USER : step.by };
}
