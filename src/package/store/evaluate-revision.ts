import { timestamp } from '../../foundation/time/clock.ts';
import { refuseEdited, refuseOvertaken } from '../kernel/main-edit.ts';
import { refuseStructure } from '../kernel/structure.ts';
import type { PackageContent } from '../model/content/content.ts';
import type { Gate } from '../model/gates/gates.ts';
import { mainRef } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { RevisionRecord } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Refusal } from '../model/revision/revision-state.ts';
import { describeKptfileProblems, kptfileProblems } from '../plan/edit/kptfile-problems.ts';
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
  /** Set where the kernel refuses every step towards a publication of this package: it cannot be read, kpt rejects it, or it is nested. */
  readonly invalid?: Refusal;
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
  const isPending = revision.lifecycle === 'Draft' || revision.lifecycle === 'Proposed';
  const [invalid] = isPending ? structureOf(repository, revision, content) : [];
  const overtaken = refuseOvertaken({ ...revision, onMain });
  return {
    revision,
    content,
    record,
    policy,
    gates: gatesAt(revision, record, content, policy, at),
    ...(invalid === undefined ? {} : { invalid }),
    ...(conflict === undefined ? {} : { conflict }),
    ...(overtaken === undefined ? {} : { overtaken }),
    at,
  };
}

/** Why no approval would publish this package as it is, whatever its gates and the rules of policies say; undefined if one could. */
export function refusalOf({
  invalid,
  conflict,
}: Pick<RevisionEvaluation, 'invalid' | 'conflict'>): Refusal | undefined {
  return invalid ?? conflict;
}

function structureOf(
  { index }: Pick<PackageRepository, 'index'>,
  { name, key, problem }: PackageRevision,
  { files }: PackageContent,
): Refusal[] {
  const invalidKptfile = describeKptfileProblems(kptfileProblems(files));
  return refuseStructure({ name, problem, invalidKptfile, nestedWith: index.nestedWith(key.package) });
}
