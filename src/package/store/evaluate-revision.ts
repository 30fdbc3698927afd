import { timestamp } from '../../foundation/time/clock.ts';
import { refuseEdited, refuseOvertaken } from '../kernel/main-edit.ts';
import { refuseStructure } from '../kernel/structure.ts';
import type { PackageContent } from '../model/content/content.ts';
import { unreadableContent, unreadableReason } from '../model/content/unreadable-content.ts';
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
  /** Empty where `revision.problem` has the reason why it cannot be read. */
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
  const read = await readContent(repository, revision);
  const { content, revision: evaluated } = read;
  const record = await currentRecord(repository, revision, read.problem === undefined ? content : undefined);
  const policy = repository.policyFor(revision);
  const at = timestamp(repository.clock.now());
  const { mainHead } = repository.index;
  const onMain = await readOnMain(repository, revision, record, mainHead);
  const conflict = refuseEdited({ ...revision, main: mainRef(repository.layout), onMain });
  const isPending = revision.lifecycle === 'Draft' || revision.lifecycle === 'Proposed';
  const [invalid] = isPending ? structureOf(repository, evaluated, content) : [];
  const overtaken = refuseOvertaken({ ...revision, onMain });
  return {
    revision: evaluated,
    content,
    record,
    policy,
    gates: gatesAt(evaluated, record, content, policy, at),
    ...(invalid === undefined ? {} : { invalid }),
    ...(conflict === undefined ? {} : { conflict }),
    ...(overtaken === undefined ? {} : { overtaken }),
    at,
  };
}

/** A revision whose files cannot be read has no Kptfile that counts, so that each reader of the evaluation treats it as it does one without. */
async function readContent(
  repository: PackageRepository,
  revision: PackageRevision,
): Promise<{ revision: PackageRevision; content: PackageContent; problem?: string }> {
  try {
    return { revision, content: await repository.content(revision) };
  } catch (error) {
    const problem = unreadableReason(error);
    if (problem === undefined) throw error;
    const { etag, outOfBand, tip } = revision;
    const unread = { ...revision, etag, outOfBand, tip, kptfile: undefined, problem: revision.problem ?? problem };
    return { revision: unread, content: unreadableContent(revision.commit), problem };
  }
}

/** Whether none of the files could be read; `revision.problem` has the reason. */
export function isUnread({ revision, content }: Pick<RevisionEvaluation, 'revision' | 'content'>): boolean {
  return revision.problem !== undefined && content.files.size === 0;
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
