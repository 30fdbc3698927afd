import { conditionsOf, gatesOf, type Kptfile, type RenderStatus } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import type { Oid, RefUpdate } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { type OverwrittenBy, overwrittenText, stillOverwritten } from '../../merge/still-overwritten.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { needsRenewal } from '../../model/gates/gates.ts';
import { APPROVAL_ALLOWED_TYPE, isComputedType, READY_TYPE } from '../../model/gates/ready-type.ts';
import { issueVerdict, syncVerdicts } from '../../model/gates/verdict.ts';
import { bindsContent, type EffectivePolicy } from '../../model/policy/policy.ts';
import { formatCommitMessage } from '../../model/record/commit-message.ts';
import { type ExecutedCommand, withCommand } from '../../model/record/executed-commands.ts';
import { type LastReview, withLastReviews } from '../../model/record/last-reviews.ts';
import { type WrittenMetadata, withMetadata } from '../../model/record/object-metadata.ts';
import {
  type Contributor,
  type RevisionRecord,
  type WithdrawnApproval,
  withContributor,
  withWithdrawn,
} from '../../model/record/record.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import { readPackageFiles } from '../../upstream/upstream-reader.ts';
import type { Rendering } from '../ports/renderer.ts';
import { type RepositoryContext, signatures, type WritePlan, writeRecord } from '../ports/repository-context.ts';
import { currentRecord } from '../records/record-at-tip.ts';
import { withEditErrors } from './edit-kptfile-text.ts';
import {
  changedConditions,
  checkIssuer,
  checkRequestedTypes,
  checkTypes,
  warnOfGateless,
  warnOfUnproven,
} from './issuer-rights.ts';
import { kptfileProblems } from './kptfile-problems.ts';
import {
  applyEdits,
  applyRendering,
  fileEdits,
  type PackageEdits,
  sameData,
  writtenKptfiles,
} from './package-edits.ts';
import { planRebase, type RebaseMode, treeOnto, withMergedAuthors } from './rebase.ts';
import { permittedRendering, recordRendering, renderFiles } from './render.ts';
import { renderFailed, savesUnrendered } from './render-failure.ts';

/** Changes of a revision without a lifecycle step. All of them are one commit, or none if nothing differs. */
export interface RevisionChange extends PackageEdits {
  /** The result of the pipeline for the files as they will be; without it they are rendered as they are written. Its edits are in `files`. */
  readonly rendering?: Rendering;
  /**
   * Refuses files that cannot be rendered (RenderFailed), unless the revision has the annotation PUSH_ON_RENDER_FAILURE. A push of a
   * package by Porch's clients is such a change.
   */
  readonly mustRender?: boolean;
  /** Called with what each function did, if the files are rendered as they are written. */
  readonly onRendered?: (status: RenderStatus) => void;
  /** Pipeline and resolvers settled at the resulting content. */
  readonly settled?: { readonly resolvers: readonly string[] };
  /**
   * Records the conditions that a push issued since the record was written. Until then every read replays the pushed commits, and a rewritten
   * history would count as one push.
   */
  readonly recordPush?: boolean;
  /** Object metadata that lives in the record. In every lifecycle. */
  readonly metadata?: WrittenMetadata;
  /** A command in a comment of the pull request `source`, recorded with its effect; rejects with AlreadyExists if it was executed before. */
  readonly command?: ExecutedCommand & { readonly source: string };
  /** Recorded approvals of a proposal that do not count any more. Those that are not in the record are ignored. */
  readonly withdrawnApprovals?: readonly WithdrawnApproval[];
  /** See `withLastReviews`. */
  readonly lastReviews?: readonly LastReview[];
  /** Bases the revision on the head of the main branch, with a merge commit. */
  readonly rebase?: RebaseMode;
  /** What a merge of upstream in `files` overwrites, which the commit records. */
  readonly overwritten?: OverwrittenBy;
  /** First line of the commit. */
  readonly subject?: string;
  readonly expectedCommit?: Oid;
}

/** Plans a change; undefined if there is no difference. */
export async function planChange(
  repo: RepositoryContext,
  revision: PackageRevision,
  requested: RevisionChange,
  context: RequestContext,
): Promise<WritePlan | undefined> {
  const policy = repo.policyFor(revision);
  const at = timestamp(repo.clock.now());
  const own = withoutComputed(requested, context);
  checkAllowed(revision, own, policy, context);
  checkRequestedTypes(policy, revision.kptfile, requestedTypes(own), context);
  const content = await repo.content(revision);
  const before = await currentRecord(repo, revision, content);
  const rebase = own.rebase && (await planRebase(repo, revision, before, own.rebase, context));
  // Files of the request replace merged ones.
  const change =
    rebase === undefined
      ? own
      : { ...own, files: new Map([...rebase.files, ...(own.files ?? [])]), modes: rebase.modes };
  const draft = revision.lifecycle === 'Draft' || revision.lifecycle === 'Proposed';
  const edits = draft ? fileEdits(revision, content, change) : new Map<string, Uint8Array | null>();
  const known = before.contributors ?? [];
  for (const problem of kptfileProblems(writtenKptfiles(content, change, edits)))
    context.warn?.(`${problem} Until it is repaired ${revision.name} cannot be proposed`);
  const rendering =
    revision.lifecycle === 'Draft'
      ? await renderingOf(repo, content, change, edits, policy, context, known)
      : undefined;
  if (change.mustRender === true && rendering?.failure !== undefined && !savesUnrendered(before))
    throw renderFailed(
      "Package NOT pushed to remote. Fix locally (until 'kpt fn render' succeeds) and retry.",
      rendering.failure,
    );
  if (rendering !== undefined) withEditErrors(revision.name, () => applyRendering(edits, content, rendering));
  const { root, package: next, kptfile } = await applyEdits(repo, revision, content, edits, change.modes);
  const newGates = kptfile === undefined || kptfile === revision.kptfile ? [] : gatesOf(kptfile);
  const written = kptfile === revision.kptfile ? [] : changedConditions(revision.kptfile, kptfile);
  checkTypes(policy, revision.kptfile, [...newGates, ...written, ...(change.conditions ?? []).map(({ type }) => type)]);
  if (change.conditions !== undefined) {
    const gates = [
      ...(kptfile === undefined ? [] : gatesOf(kptfile)),
      ...policy.requiredGates.map(({ conditionType }) => conditionType),
      ...(before.proposal?.gates ?? []),
    ];
    const types = change.conditions.map(({ type }) => type);
    warnOfGateless(context, revision.name, gates, types);
  }
  // Writing a condition into the text also issues it.
  const byRendering = new Set([
    ...(rendering?.conditions ?? []).map(({ type }) => type),
    ...(rendering?.withdraw ?? []),
  ]);
  const byWriter = written.filter((type) => !byRendering.has(type) && !isSetBy(change, type));
  // Clients push whole packages, including conditions, without the right to issue any: those are kept without a
  // verdict.
  const mayIssue = byWriter.length === 0 || (await context.mayWriteStatus?.()) !== false;
  if (mayIssue) checkIssuer(policy, byWriter, context);
  else warnOfUnproven(context, byWriter);
  let record = before;
  if (next.content !== content.content && draft) {
    const contributors = withContributor(known, context, at, revision.commit);
    if (contributors.length > known.length) record = { ...record, contributors };
    if (rebase !== undefined && rebase.files.size + rebase.modes.size > 0)
      record = withMergedAuthors(record, rebase, at);
  }
  if (rendering !== undefined) record = recordRendering(record, rendering, next, at, policy);
  if (draft)
    record = updateVerdicts(record, revision.kptfile, kptfile, next, change, { policy, context, at, mayIssue });
  if (change.settled !== undefined && !sameSettled(record, next.content, change.settled.resolvers)) {
    record = { ...record, settled: { content: next.content, resolvers: [...change.settled.resolvers], at } };
  }
  if (change.metadata !== undefined) record = withMetadata(record, change.metadata);
  const { withdrawnApprovals = [] } = change;
  const kept = revision.lifecycle === 'Proposed' ? withWithdrawn(record, withdrawnApprovals) : record;
  const isWithdrawn = kept !== record;
  record = withLastReviews(kept, change.lastReviews ?? []);
  if (change.command !== undefined) {
    const { source, ...command } = change.command;
    record = { ...record, commands: withCommand(before.commands, source, command) };
  }

  const contentChanged = next.tree !== content.tree;
  if (rebase !== undefined) record = { ...record, base: rebase.base };
  if (contentChanged && context.face === 'controller') record = spendBudget(record, policy, revision.name, at);
  const updates: RefUpdate[] = [];
  let commit = revision.commit;
  const hasCommit = contentChanged || rebase !== undefined;
  if (hasCommit) {
    const merge = rebase?.overwritten ?? change.overwritten;
    commit = await repo.git.writeCommit({
      tree: rebase === undefined ? root : await treeOnto(repo, revision, rebase, next.tree),
      parents: [revision.commit, ...(rebase === undefined || rebase.isStripped === true ? [] : [rebase.head])],
      ...signatures(repo, context),
      message: formatCommitMessage(change.subject ?? describe(own), {
        annotations: [{ package: revision.path, workspaceName: revision.key.workspace }],
        context,
        action: 'edit',
        overwritten: merge && (await recordedOverwritten(repo, merge, next.tree)),
        kept: merge?.kept,
      }),
    });
    updates.push({ type: 'update', ref: revision.ref, old: revision.refOid, new: commit });
  }
  const learned = change.recordPush === true && needsRecording(revision, before);
  if (!hasCommit && record === before && !learned) return undefined;
  // The head of the main branch is not specific to one package on it.
  if (!hasCommit && !isPlaceholder(revision)) updates.push({ type: 'verify', ref: revision.ref, old: revision.refOid });
  const subject = `${change.subject ?? describe(own)} (${revision.name})`;
  const note = { subject, action: isWithdrawn ? 'withdraw' : 'edit', ...(hasCommit ? { made: commit } : {}) };
  const { update, mark } = await writeRecord(repo, revision, { ...record, commit }, note, context);
  updates.push(update);
  return { updates, name: revision.name, marks: [mark], revokes: isWithdrawn || revokesVerdict(before, record) };
}

async function recordedOverwritten(
  { git }: RepositoryContext,
  merge: OverwrittenBy,
  tree: Oid,
): Promise<string | undefined> {
  return overwrittenText(merge.by, await stillOverwritten(merge, () => readPackageFiles(git, tree)));
}

/** Conditions that Sluice computes cannot be issued or withdrawn. */
function withoutComputed(change: RevisionChange, context: RequestContext): RevisionChange {
  const { conditions = [], withdraw = [] } = change;
  const computed = [READY_TYPE, APPROVAL_ALLOWED_TYPE].filter((type) => isSetBy(change, type));
  if (computed.length === 0) return change;
  for (const type of computed)
    context.warn?.(
      type === READY_TYPE
        ? `${type} was ignored: Sluice computes it from the gates, and conditions of their types open those`
        : `${type} was ignored: Sluice computes it from the rules for approvals`,
    );
  return {
    ...change,
    conditions: conditions.filter(({ type }) => !isComputedType(type)),
    withdraw: withdraw.filter((type) => !isComputedType(type)),
  };
}

/** True if a verdict that opened a gate before does not any more. */
function revokesVerdict(before: RevisionRecord, after: RevisionRecord): boolean {
  const open = new Set(after.verdicts.flatMap(({ type, status }) => (status === 'True' ? type : [])));
  return before.verdicts.some(({ type, status }) => status === 'True' && !open.has(type));
}

/** Only issued and withdrawn conditions must be recorded; the rest of a push is in Git already. */
function needsRecording(revision: PackageRevision, atTip: RevisionRecord): boolean {
  // Its statement is in the publication: it was a draft when the caller read it.
  if (isPublished(revision)) return false;
  const known = revision.record?.verdicts;
  // Since then the Git host reported who pushed.
  if (revision.record?.commit === revision.commit && atTip !== revision.record) return true;
  return known === undefined ? atTip.verdicts.length > 0 : atTip.verdicts !== known;
}

/** Returns the next step for changing the files of such a revision. */
function returnToDraft({ lifecycle, name }: PackageRevision): string {
  return lifecycle === 'Proposed'
    ? `: "sluice rpkg reject ${name}" returns it to Draft`
    : ': copy it to a new workspace with "sluice rpkg copy"';
}

/** The types that a request names by themselves, and not in the text of a Kptfile. */
function requestedTypes({ conditions = [], kptfile = [] }: RevisionChange) {
  return {
    conditions: conditions.map(({ type }) => type),
    gates: kptfile.flatMap((edit) => (edit.op === 'addGate' ? edit.conditionType : [])),
  };
}

function checkAllowed(
  revision: PackageRevision,
  change: RevisionChange,
  policy: EffectivePolicy,
  context: RequestContext,
): void {
  if (change.expectedCommit !== undefined && change.expectedCommit !== revision.commit) {
    throw new SluiceError(
      'Conflict',
      `${revision.name} is at ${revision.commit} now, the change was made for ${change.expectedCommit}; read it again`,
    );
  }
  if (((change.files?.size ?? 0) > 0 || change.whole !== undefined) && revision.lifecycle !== 'Draft') {
    throw new SluiceError(
      'Refused',
      `cannot update a package revision with lifecycle value "${revision.lifecycle}"; package must be Draft${returnToDraft(revision)}`,
    );
  }
  const touchesKptfile =
    (change.kptfile?.length ?? 0) + (change.conditions?.length ?? 0) + (change.withdraw?.length ?? 0) > 0;
  if (touchesKptfile && revision.lifecycle !== 'Draft' && revision.lifecycle !== 'Proposed') {
    throw new SluiceError(
      'Refused',
      `conditions and gates of ${revision.name} cannot change any more: it is ${revision.lifecycle}; copy it to a new workspace`,
    );
  }
  // An approver must see every gate that existed when it was proposed.
  const notNow = revision.lifecycle === 'Proposed' ? change.kptfile?.find((edit) => edit.op !== 'addGate') : undefined;
  if (notNow !== undefined) {
    const what = notNow.op === 'removeGate' ? `the gate ${notNow.conditionType} stays while ` : '';
    throw new SluiceError('Refused', `${what}${revision.name} is Proposed; reject it first, then edit the draft`);
  }
  checkIssuer(policy, [...(change.conditions ?? []).map((given) => given.type), ...(change.withdraw ?? [])], context);
}

/**
 * Returns the rendering of the changed files, if there are any. Nothing if nothing differs, since unchanged files need no
 * commit.
 */
async function renderingOf(
  repo: RepositoryContext,
  content: PackageContent,
  change: RevisionChange,
  edits: ReadonlyMap<string, Uint8Array | null>,
  policy: EffectivePolicy,
  context: RequestContext,
  known: readonly Contributor[],
): Promise<Rendering | undefined> {
  let { rendering } = change;
  if (rendering === undefined) {
    const touches = (change.files?.size ?? 0) + (change.kptfile?.length ?? 0) > 0 || change.whole !== undefined;
    const differs = [...edits].some(([path, data]) => !sameData(content.files.get(path), data));
    if (!touches || !differs) return undefined;
    const files = new Map<string, Uint8Array>(content.files);
    for (const [path, data] of edits) {
      if (data === null) files.delete(path);
      else files.set(path, data);
    }
    rendering = await renderFiles(files, repo, policy, context);
    if (rendering === undefined) return undefined;
    if (rendering.renderStatus !== undefined) change.onRendered?.(rendering.renderStatus);
  }
  // An actor who changes the package can also change its functions.
  const permitted = permittedRendering(rendering, policy, withContributor(known, context, '', ''));
  for (const sentence of permitted.refused) context.warn?.(sentence);
  return permitted.rendering;
}

function updateVerdicts(
  record: RevisionRecord,
  before: Kptfile | undefined,
  after: Kptfile | undefined,
  inputs: PackageContent,
  change: RevisionChange,
  { policy, context, at, mayIssue }: VerdictSources,
): RevisionRecord {
  // A Kptfile that cannot be read has no conditions.
  if (after === undefined) return record;
  let next = record;
  for (const given of change.conditions ?? []) {
    const renew = needsRenewal(policy, next, given.type, context.face, at);
    const wholeContent = bindsContent(policy, given.type);
    next = issueVerdict(next, given, inputs, context, at, { renew, wholeContent });
  }
  // The writer of the Kptfile text is the issuer of the conditions that it changed.
  const known = before === undefined ? undefined : conditionsOf(before);
  const binds = (type: string) => bindsContent(policy, type);
  const written = { conditions: conditionsOf(after), known, unproven: () => !mayIssue, bindsContent: binds };
  return syncVerdicts(next, written, inputs, context, at);
}

interface VerdictSources {
  readonly policy: EffectivePolicy;
  readonly context: RequestContext;
  readonly at: string;
  /** False if the caller may write files and not issue conditions. */
  readonly mayIssue: boolean;
}

/** True for a condition that the change itself sets or withdraws; whether that is allowed was checked before. */
function isSetBy({ conditions = [], withdraw = [] }: RevisionChange, type: string): boolean {
  return conditions.some((given) => given.type === type) || withdraw.includes(type);
}

function spendBudget(record: RevisionRecord, policy: EffectivePolicy, name: string, at: string): RevisionRecord {
  const hour = 3_600_000;
  const started = record.budget === undefined ? 0 : Date.parse(record.budget.since);
  const now = Date.parse(at);
  // A clock that was set back starts a new hour rather than blocking until it catches up.
  const running = record.budget !== undefined && now >= started && now - started < hour;
  const commits = running ? (record.budget?.commits ?? 0) : 0;
  if (commits >= policy.commitBudgetPerHour) {
    throw new SluiceError(
      'LimitExceeded',
      `controllers have made ${commits} commits on ${name} since ${record.budget?.since}, the budget is ${policy.commitBudgetPerHour} an hour; find out what keeps changing the package`,
      { details: { budgetExhausted: true, retryAt: timestamp(started + hour) } },
    );
  }
  return { ...record, budget: { since: running ? (record.budget?.since ?? at) : at, commits: commits + 1 } };
}

function sameSettled(record: RevisionRecord, content: string, resolvers: readonly string[]): boolean {
  const settled = record.settled;
  return settled?.content === content && settled.resolvers.join('\n') === resolvers.join('\n');
}

function describe(change: RevisionChange): string {
  const parts: string[] = [];
  if ((change.files?.size ?? 0) > 0 || change.whole !== undefined) parts.push('Edit package');
  for (const given of change.conditions ?? []) parts.push(`${given.type} is ${given.status}`);
  for (const type of change.withdraw ?? []) parts.push(`withdraw ${type}`);
  if ((change.kptfile?.length ?? 0) > 0) parts.push('edit Kptfile');
  if (change.rebase !== undefined) parts.push('Merge the main branch');
  if (change.metadata !== undefined) parts.push('Change metadata');
  for (const { approval } of change.withdrawnApprovals ?? [])
    parts.push(`withdraw the approval of ${approval.subject}`);
  if (parts.length === 0 && (change.lastReviews?.length ?? 0) > 0) parts.push('Later reviews');
  if (parts.length === 0 && change.command !== undefined)
    parts.push(`${change.command.command} of ${change.command.user} (${change.command.outcome})`);
  if (parts.length === 0 && change.settled !== undefined) parts.push('Resolvers have reported');
  if (parts.length === 0 && change.recordPush === true) parts.push('Record a push');
  // The remaining changes are those of rendering unchanged files.
  const text = parts.join(', ') || 'Render package';
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}
