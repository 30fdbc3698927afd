import { isPublished, type PackageRevision } from '../../../package/model/revision/package-revision.ts';
import type { RepositoryTrust } from '../../../package/trust/repository-trust.ts';
import { payloadOf, statementDigest } from '../../../package/trust/statement/statement.ts';
import type { LogEntry } from './log-entry.ts';

/**
 * The steps for which a process emits Events. `all`: it alone runs on its trust ledger. Where each role has a process of its own, both see all
 * steps: `own` are those that the process wrote itself, and `own-and-foreign` also those that no process on the ledger wrote, such as pushes and
 * what another installation of Sluice signed.
 */
export type ReportedSteps = 'all' | 'own' | 'own-and-foreign';

/** True if the process has to emit the Event of a step. `revision` is the result of the step. */
export function reportsStep(
  reported: ReportedSteps,
  { event, fields = {} }: Pick<LogEntry, 'event' | 'fields'>,
  revision: PackageRevision,
  trust: Pick<RepositoryTrust, 'writerOf'>,
): boolean {
  if (reported === 'all') return true;
  const { from } = fields;
  const isPublication =
    isPublished(revision) && (event === 'BreakGlass' || (from !== 'Published' && from !== 'DeletionProposed'));
  const statement = isPublication ? publicationOf(revision) : revision.statement;
  const writer = statement === undefined ? 'other' : trust.writerOf(statement);
  return writer === 'this-process' || (writer === 'other' && reported === 'own-and-foreign');
}

/** The digest and the signer of a publication that counts. */
function publicationOf({ outOfBand, tip }: PackageRevision): Parameters<RepositoryTrust['writerOf']>[0] | undefined {
  const signed = outOfBand === undefined ? tip.facts.statement : undefined;
  return signed && { digest: statementDigest(payloadOf(signed.statement)), signer: tip.signer };
}
