import { conditionsOf, gatesOf } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import { type FoldedRecord, formatCommitMessage } from '../commit-message.ts';
import type { PackageContent } from '../content.ts';
import { decide } from '../kernel/decide.ts';
import type { Action, Allowed, RefStep, Refused, RevisionState } from '../kernel/types.ts';
import { deletionProposedRef, draftRef, mainRef, proposedRef, recordRef, tagRef } from '../layout.ts';
import { isPlaceholder, type PackageRevision } from '../package-revision.ts';
import { hasObjectMetadata, type RevisionRecord, withStep } from '../record.ts';
import { currentRecord } from '../record-at-tip.ts';
import { signatures, type Workbench, type WritePlan, writeRecord } from './workbench.ts';

export interface Transition {
  readonly action: Action;
  readonly expectedCommit?: Oid;
}

/** A lifecycle step that the kernel refused; `details` are its reasons. */
export class TransitionRefusedError extends SluiceError<Refused> {
  constructor(revision: PackageRevision, action: Action, refused: Refused) {
    const conflict = refused.refusals.every((refusal) => refusal.code === 'Conflict');
    const reasons = refused.refusals.map((refusal) => refusal.message);
    const message = reasons.length === 1 ? `${reasons[0]}` : `cannot ${action} ${revision.name}: ${reasons.join('; ')}`;
    super(conflict ? 'Conflict' : 'Refused', message, { details: refused });
    this.name = 'TransitionRefusedError';
  }
}

/** Everything the kernel needs to judge a revision, read at one point in time. */
export async function stateOf(bench: Workbench, revision: PackageRevision): Promise<RevisionState> {
  const content = await bench.content(revision);
  const record = currentRecord(revision, content);
  const { layout, index } = bench;
  const version = revision.revision > 0 ? `v${revision.revision}` : revision.key.workspace;
  const deletionProposed = deletionProposedRef(layout, revision.key.package, version);
  return {
    name: revision.name,
    lifecycle: revision.lifecycle,
    revision: revision.revision,
    commit: isPlaceholder(revision) ? (index.mainHead ?? revision.commit) : revision.commit,
    problem: revision.problem,
    facts: {
      gates: revision.kptfile === undefined ? [] : gatesOf(revision.kptfile),
      conditions: revision.kptfile === undefined ? new Map() : conditionsOf(revision.kptfile),
      record,
      inputs: content,
    },
    proposedBy: proposerOf(revision, record),
    siblings: index.ofPackage(revision.key.package).filter((other) => other.name !== revision.name),
    nestedWith: index.nestedWith(revision.key.package),
    dependents: revision.lifecycle === 'DeletionProposed' ? bench.dependentsOf(revision) : [],
    refs: {
      main: mainRef(layout),
      draft: draftRef(layout, revision.key),
      proposed: proposedRef(layout, revision.key),
      tag: revision.ref.startsWith('refs/tags/') ? revision.ref : undefined,
      deletionProposed,
      tagFor: (number) => tagRef(layout, revision.key.package, `v${number}`),
    },
    mainHead: index.mainHead,
    deletionProposed: index.ref(deletionProposed),
  };
}

/** Who proposed what is proposed now. A push that moved the branch since is nobody's proposal that Sluice knows of. */
function proposerOf(revision: PackageRevision, record: RevisionRecord): string | undefined {
  const last = record.steps.at(-1);
  return last?.action === 'propose' && revision.record?.commit === revision.commit ? last.by : undefined;
}

/** Plans a lifecycle step. Throws TransitionRefusedError with every reason if the kernel refuses. */
export async function planTransition(
  bench: Workbench,
  revision: PackageRevision,
  transition: Transition,
  context: RequestContext,
): Promise<WritePlan> {
  const policy = bench.policyFor(revision);
  const at = timestamp(bench.clock.now());
  const state = await stateOf(bench, revision);
  const request = { ...transition, actor: context.actor, face: context.face };
  const decision = decide(state, request, policy, at);
  if (!decision.allowed) throw new TransitionRefusedError(revision, transition.action, decision);

  const content = await bench.content(revision);
  const record = withStep(currentRecord(revision, content), {
    action: transition.action,
    by: context.actor.name,
    face: context.face,
    at,
    commit: revision.commit,
    ...(context.reason === undefined ? {} : { reason: context.reason }),
    ...bypassNote(decision),
  });
  const made = await commitFor(bench, revision, decision, content, record, context);
  const updates = decision.plan.map((step) => refUpdate(step, revision, made));
  const kept = await keepRecord(bench, revision, decision, record, made ?? revision.commit, context);
  if (kept !== undefined) updates.push(kept);
  return { updates, name: revision.name };
}

function bypassNote(decision: Allowed): { gates?: string[] } {
  const gates = decision.bypassed.flatMap((refusal) => refusal.gate?.type ?? []);
  return gates.length === 0 ? {} : { gates };
}

/** Writes the commit that a plan's `approval` or `removal` stands for; undefined if it has neither. */
async function commitFor(
  bench: Workbench,
  revision: PackageRevision,
  decision: Allowed,
  content: PackageContent,
  record: RevisionRecord,
  context: RequestContext,
): Promise<Oid | undefined> {
  const kind = decision.plan.find((step) => step.become.kind === 'approval' || step.become.kind === 'removal')?.become
    .kind;
  const head = bench.index.mainHead;
  if (kind === undefined || head === undefined) return undefined;
  const base = await bench.git.readCommit(head);
  const number = decision.next?.revision ?? 0;
  if (kind === 'removal') {
    return bench.git.writeCommit({
      tree: await bench.git.editTree(base.tree, new Map([[revision.path, null]])),
      parents: [head],
      ...signatures(bench, context),
      message: formatCommitMessage(`Delete ${revision.path}`, { context, action: 'delete' }),
    });
  }
  const folded: FoldedRecord = {
    verdicts: record.verdicts,
    steps: record.steps,
    content: content.content,
    ...(record.task === undefined ? {} : { task: record.task }),
    ...(decision.bypassed.length === 0 ? {} : { gatesBypassed: true }),
  };
  return bench.git.writeCommit({
    tree: await bench.git.editTree(base.tree, new Map([[revision.path, { oid: content.tree, mode: '040000' }]])),
    parents: [head, revision.commit],
    ...signatures(bench, context),
    message: formatCommitMessage(`Approving package revision ${revision.path}/${number}`, {
      annotation: { package: revision.path, workspaceName: revision.key.workspace, revision: `${number}` },
      context,
      action: 'approve',
      record: folded,
    }),
  });
}

function refUpdate(step: RefStep, revision: PackageRevision, made: Oid | undefined): RefUpdate {
  const { ref } = step;
  // The kernel speaks of commits; a tag made by hand can be a tag object.
  const old =
    step.expect !== null && ref === revision.ref && ref.startsWith('refs/tags/') ? revision.refOid : step.expect;
  const next = step.become.kind === 'commit' ? step.become.oid : made;
  if (step.become.kind === 'absent') {
    if (old === null) throw new SluiceError('Internal', `the plan deletes ${ref}, which must not exist`);
    return { type: 'delete', ref, old };
  }
  if (next === undefined) throw new SluiceError('Internal', `no commit was made for ${ref}`);
  return old === null ? { type: 'create', ref, new: next } : { type: 'update', ref, old, new: next };
}

/** The record moves in the same transaction; publication folds it into the approval commit, deletion ends it. */
async function keepRecord(
  bench: Workbench,
  revision: PackageRevision,
  decision: Allowed,
  record: RevisionRecord,
  commit: Oid,
  context: RequestContext,
): Promise<RefUpdate | undefined> {
  const before = revision.recordOid;
  const published = decision.next?.lifecycle === 'Published' && revision.lifecycle === 'Proposed';
  if (decision.next === undefined || (published && !hasObjectMetadata(record))) {
    return before === undefined
      ? undefined
      : { type: 'delete', ref: recordRef(bench.layout, revision.uid), old: before };
  }
  const next = published ? { ...record, commit, verdicts: [], steps: [] } : { ...record, commit };
  const step = record.steps.at(-1);
  const subject = `${step?.action} ${revision.name} by ${context.actor.name}${context.reason === undefined ? '' : `: ${context.reason}`}`;
  return writeRecord(bench, revision, next, { subject, action: step?.action ?? 'edit' }, context);
}
