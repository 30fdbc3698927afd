import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { evaluateGates } from '../model/gates/gates.ts';
import { tagRef } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import {
  formatCommitMessage,
  type PackageAnnotation,
  type PublicationStatement,
} from '../model/record/commit-message.ts';
import type { RecordStatement, RevisionRecord } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Action, Allowed } from '../model/revision/revision-state.ts';
import type { OwnStatementFact } from '../trust/repository-trust.ts';
import { STATEMENT_VERSION } from '../trust/statement/statement.ts';
import { type RepositoryContext, signatures } from './ports/repository-context.ts';
import type { StateReading } from './read-state.ts';
import { commitAuthors } from './records/record-chain.ts';

/** A lifecycle step that the kernel allowed, with what it decided on. */
export interface DecidedStep {
  readonly repo: RepositoryContext;
  readonly revision: PackageRevision;
  readonly action: Action;
  readonly decision: Allowed;
  readonly reading: StateReading;
  /** As it is after the step. */
  readonly record: RevisionRecord;
  readonly policy: EffectivePolicy;
  /** The time by which gates were evaluated, RFC 3339. */
  readonly at: string;
  /** See `TransitionRequest.closedNow`. */
  readonly closedNow?: string | undefined;
  readonly context: RequestContext;
}

/** The objects of a step. */
export interface WrittenObjects {
  /** The commit of an approval or a removal. */
  readonly made?: Oid;
  /** The commit of the Git host that is published instead. */
  readonly merged?: Oid;
  /** The tag that has the statement, where the commit does not. */
  readonly statementTag?: Oid;
  /** The statement of a publication. */
  readonly fact?: OwnStatementFact;
}

/** Rules of policies that a statement names as bypassed. */
const MAX_STATED_RULES = 20;
const WRITTEN_KINDS: ReadonlySet<string> = new Set(['approval', 'statement', 'removal']);

/** Writes the commit for a plan's `approval` or `removal`, or the tag for its `statement`; nothing if it has none of them. */
export async function writeObjects(step: DecidedStep): Promise<WrittenObjects> {
  const { repo, revision, decision, reading, context } = step;
  const { become } = decision.plan.find(({ become: { kind } }) => WRITTEN_KINDS.has(kind)) ?? {};
  const head = reading.state.mainHead;
  if (become === undefined || head === undefined) return {};
  if (become.kind === 'removal') return { made: await writeRemoval(step, head) };
  if (become.kind === 'statement') {
    const onto = reading.state.merge?.onto ?? '';
    const { statementTag, fact } = await writePublicationTag(step, become.on, await statementOf(step, onto));
    return { merged: become.on, statementTag, fact };
  }
  const { signed, fact } = await repo.trust.sign(await statementOf(step, head));
  const base = await repo.git.readCommit(head);
  const made = await repo.git.writeCommit({
    tree: await repo.git.editTree(base.tree, new Map([[revision.path, { oid: contentOf(step).tree, mode: '040000' }]])),
    parents: [head, revision.commit],
    ...signatures(repo, context),
    message: formatCommitMessage(subjectOf(step), {
      annotations: [annotationOf(step)],
      context,
      action: 'approve',
      statement: signed,
    }),
  });
  repo.index.noteSigner(made, fact.signer);
  return { made, fact };
}

async function writeRemoval({ repo, revision, record, context }: DecidedStep, head: Oid): Promise<Oid> {
  const base = await repo.git.readCommit(head);
  const scope = { package: revision.path, workspace: revision.key.workspace };
  const removal: RecordStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'record', repository: repo.trust.repository, ...scope },
    ...repo.trust.next(scope, revision.statement),
    // For this head only: the package may be restored later.
    record: { ...record, commit: head, verdicts: [] },
  };
  const { signed } = await repo.trust.sign(removal);
  return repo.git.writeCommit({
    tree: await repo.git.editTree(base.tree, new Map([[revision.path, null]])),
    parents: [head],
    ...signatures(repo, context),
    message: formatCommitMessage(`Delete ${revision.path}`, { context, action: 'delete', statement: signed }),
  });
}

/** Signs a statement in the message of an annotated tag on a commit. */
export async function writePublicationTag(
  step: DecidedStep,
  on: Oid,
  statement: PublicationStatement,
): Promise<{ readonly statementTag: Oid; readonly fact: OwnStatementFact }> {
  const { repo, context } = step;
  const { signed, fact } = await repo.trust.sign(statement);
  const message = formatCommitMessage(subjectOf(step), {
    annotations: [annotationOf(step)],
    context,
    action: 'approve',
    statement: signed,
  });
  const statementTag = await writeTag(step, on, message);
  repo.index.noteSigner(statementTag, fact.signer);
  return { statementTag, fact };
}

/** The statement of a publication whose commit has the first parent `onto`. */
export async function statementOf(
  step: DecidedStep,
  onto: Oid,
  more: Pick<PublicationStatement, 'sharedCommit'> = {},
): Promise<PublicationStatement> {
  const { repo, revision, decision, reading, record, policy, at, closedNow, context } = step;
  const content = contentOf(step);
  const scope = { package: revision.path, workspace: revision.key.workspace };
  const commits = await commitAuthors(repo, revision, record.contributors);
  const { mergeBypass } = decision;
  const areIgnored = decision.bypassed.some(({ gate }) => gate !== undefined) && mergeBypass?.gates !== true;
  const rules = decision.bypassed.flatMap(({ blockedBy }) => blockedBy ?? []);
  return {
    ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: repo.trust.repository, ...scope },
    ...repo.trust.next(scope, revision.statement),
    ...{ revision: numberOf(step), tree: reading.mergedTree ?? content.tree, draft: revision.commit },
    ...{ branch: repo.layout.branch, onto, ...more },
    record: {
      verdicts: record.verdicts,
      steps: record.steps,
      content: content.content,
      gates: evaluateGates(reading.state.facts, policy, at).map(({ type, requiredBy, state }) => ({
        ...{ type, requiredBy },
        state: type === closedNow && state === 'Open' ? 'NotTrue' : state,
      })),
      contributors: record.contributors ?? [],
      approvals: record.approvals ?? [],
      ...(commits.length === 0 ? {} : { commits }),
      ...(record.task === undefined ? {} : { task: record.task }),
      ...(record.createdAt === undefined ? {} : { createdAt: record.createdAt }),
      ...(areIgnored ? { gatesBypassed: true } : {}),
      ...(decision.brokeGlass === true ? { breakGlass: { by: context.actor.name, reason: context.reason ?? '' } } : {}),
      ...(rules.length === 0 ? {} : { rulesBypassed: rules.slice(0, MAX_STATED_RULES).map(({ message }) => message) }),
      ...(mergeBypass === undefined ? {} : { mergeBypass: bypassOf(mergeBypass) }),
    },
  };
}

function bypassOf({
  notApproved,
  objection,
  foreign,
}: Allowed['mergeBypass'] & {}): PublicationStatement['record']['mergeBypass'] & {} {
  return {
    ...(notApproved === undefined ? {} : { notApproved }),
    ...(objection === undefined ? {} : { objection }),
    ...(foreign === undefined ? {} : { foreign }),
  };
}

/** The package that a step publishes. */
export function contentOf({ revision, reading: { content } }: DecidedStep): StateReading['content'] & {} {
  if (content === undefined) throw new SluiceError('Internal', `${revision.name} cannot be read, and was approved`);
  return content;
}

/** The line of an approval that Porch reads. */
export function annotationOf(step: DecidedStep): PackageAnnotation {
  const { path, key } = step.revision;
  return { package: path, workspaceName: key.workspace, revision: `${numberOf(step)}` };
}

function subjectOf(step: DecidedStep): string {
  return `Approving package revision ${step.revision.path}/${numberOf(step)}`;
}

function numberOf({ decision }: DecidedStep): number {
  return decision.next?.revision ?? 0;
}

/**
 * Returns the target of a publication's tag: the approval itself, as in Porch, or with signing a tag object, since a lightweight
 * tag could be set to another signed commit. `made` also without a publication.
 */
export async function tagFor(step: DecidedStep, made: Oid): Promise<Oid> {
  const { repo, revision, decision } = step;
  if (!repo.git.signs || decision.next === undefined) return made;
  return writeTag(step, made, `${revision.name}\n`);
}

function writeTag(step: DecidedStep, on: Oid, message: string): Promise<Oid> {
  const { repo, revision, context } = step;
  const ref = tagRef(repo.layout, revision.key.package, `v${numberOf(step)}`);
  const name = ref.slice('refs/tags/'.length);
  return repo.git.writeTag({
    ...{ object: on, type: 'commit', name, message },
    tagger: signatures(repo, context).committer,
  });
}
