import { timestamp } from '../../foundation/time/clock.ts';
import { refuseEdited, refuseOvertaken } from '../kernel/main-edit.ts';
import type { PackageContent } from '../model/content/content.ts';
import type { Gate } from '../model/gates/gates.ts';
import { mainRef } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { RevisionRecord } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Refusal } from '../model/revision/revision-state.ts';
import { gatesAt } from '../plan/read-state.ts';
import { readOnMain } from '../plan/records/on-main.ts';
import { currentRecord } from '../plan/records/record-at-tip.ts';
import type { PackageRepository } from './package-repository.ts';

/** The data that gates, controllers and `why` evaluate about a revision, read at one point in time. */
export interface RevisionEvaluation {
  readonly revision: PackageRevision;
  readonly content: PackageContent;
  readonly record: RevisionRecord;
  readonly policy: EffectivePolicy;
  readonly gates: readonly Gate[];
  /** Set where the package was edited on the main branch since, which refuses every approval. */
  readonly conflict?: Refusal;
  /** Set where another revision was published since, which an approval would undo: controllers do not approve it. */
  readonly overtaken?: Refusal;
  /** Time of the evaluation, RFC 3339. */
  readonly at: string;
}

/** Evaluates a revision as the kernel would, by the policies as they were read last. */
export async function evaluateRevision(
  repository: PackageRepository,
  revision: PackageRevision,
): Promise<RevisionEvaluation> {
  const content = await repository.content(revision);
  const record = await currentRecord(repository, revision, content);
  const policy = repository.policyFor(revision);
  const at = timestamp(repository.clock.now());
  const { mainHead } = repository.index;
  const onMain = await readOnMain(repository, revision, record, mainHead);
  const conflict = refuseEdited({ ...revision, main: mainRef(repository.layout), onMain });
  const overtaken = refuseOvertaken({ ...revision, onMain });
  return {
    revision,
    content,
    record,
    policy,
    gates: gatesAt(revision, record, content, policy, at),
    ...(conflict === undefined ? {} : { conflict }),
    ...(overtaken === undefined ? {} : { overtaken }),
    at,
  };
}
