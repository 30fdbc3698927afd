import { conditionsOf, type KptfileEdit, readKptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import { traced } from '../../../foundation/tracing/traced.ts';
import type { Oid, RefUpdate, TreeEdit } from '../../../git/git-repository.ts';
import { lookalikeProblem } from '../../../resource/object/lookalike.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { overwrittenTexts } from '../../merge/overwritten.ts';
import { type OverwrittenBy, overwrittenText, stillOverwritten } from '../../merge/still-overwritten.ts';
import { readPackage } from '../../model/content/content.ts';
import { checkPackageSize } from '../../model/content/package-size.ts';
import {
  type IssuedCondition,
  issueVerdict,
  PUSH_ACTOR,
  plainCondition,
  syncVerdicts,
} from '../../model/gates/verdict.ts';
import { type RevisionKey, revisionName } from '../../model/identity/identity.ts';
import { draftRef, mainRef, packagePath, recordRef } from '../../model/identity/layout.ts';
import { formatCommitMessage } from '../../model/record/commit-message.ts';
import { withMetadata } from '../../model/record/object-metadata.ts';
import {
  type Contributor,
  emptyRecord,
  type RevisionRecord,
  type Verdict,
  withContributor,
} from '../../model/record/record.ts';
import type { NewRevision, RevisionSource } from '../../upstream/revision-source.ts';
import { readPackageFiles, type UpstreamReader } from '../../upstream/upstream-reader.ts';
import { editKptfileText } from '../edit/edit-kptfile-text.ts';
import { warnOfUnproven } from '../edit/issuer-rights.ts';
import { refusePolicyPackage } from '../policy-rights.ts';
import { type RepositoryContext, signatures, type WritePlan, writeRecord } from '../ports/repository-context.ts';
import { latestIn } from '../records/on-main.ts';
import { checkPlace } from './place.ts';
import { renderNew } from './render-new.ts';
import type { Start } from './start.ts';
import { startClone } from './start-clone.ts';
import { startCopy } from './start-copy.ts';
import { startInit } from './start-init.ts';
import { startUpgrade } from './start-upgrade.ts';

/** Plans a new draft: a branch from the main head with one commit, and its record. */
export function planCreate(
  repo: RepositoryContext,
  wanted: NewRevision,
  upstreams: UpstreamReader,
  context: RequestContext,
): Promise<WritePlan> {
  return traced('package.plan', {}, () => planDraft(repo, wanted, upstreams, context));
}

async function planDraft(
  repo: RepositoryContext,
  wanted: NewRevision,
  upstreams: UpstreamReader,
  context: RequestContext,
): Promise<WritePlan> {
  const key = checkPlace(repo, wanted);
  for (const edit of wanted.kptfile ?? []) if (edit.op === 'addGate') checkType(edit.conditionType);
  const head = repo.index.mainHead;
  if (head === undefined) {
    throw new SluiceError(
      'InvalidInput',
      `${mainRef(repo.layout)} does not exist in repository ${repo.repository}; push a first commit or set spec.git.createBranch`,
    );
  }
  const name = revisionName(key);
  const latest = latestIn(repo.index.ofPackage(key.package));
  if (wanted.expectedLatest !== undefined && latest?.name !== wanted.expectedLatest)
    throw new SluiceError(
      'Conflict',
      `${latest?.name} was published after ${wanted.expectedLatest}; read it, then create ${name} again`,
    );
  const path = packagePath(repo.layout, key.package);
  const subject = { key, name, path, namespace: repo.namespace, kptfile: undefined, record: undefined };
  await refusePolicyPackage(name, repo.policyFor(subject), context);
  const start = await startOf(repo, key, wanted.source, upstreams, context);
  const mainCommit = await repo.git.readCommit(head);
  const begunTree = await repo.git.editTree(mainCommit.tree, start.edits);
  const edited = await withKptfile(repo, begunTree, path, wanted.kptfile ?? []);
  const at = timestamp(repo.clock.now());
  const verdicts = start.verdicts ?? (await givenIn(repo, `${edited}:${path}`, context, at));
  const adapted = await adapt(repo, edited, path, wanted);
  const rendered = await renderNew(repo, adapted.tree, path, context, wanted.onRendered);
  const merged = start.overwritten ?? wanted.overwritten;
  const overwritten = merged && (await reportOverwritten(repo, merged, `${rendered.root}:${path}`, context));
  const commit = await repo.git.writeCommit({
    tree: rendered.root,
    parents: [head],
    ...signatures(repo, context),
    message: formatCommitMessage(start.subject, {
      annotations: [{ package: path, workspaceName: key.workspace, task: start.task }],
      context,
      action: wanted.source.type,
      ...{ overwritten, kept: merged?.kept },
    }),
  });
  const empty: RevisionRecord = {
    ...emptyRecord(commit),
    verdicts: [...verdicts],
    ...(start.source === undefined ? {} : { source: start.source }),
    base: { commit: head, ...(start.basedOn === undefined ? {} : { tree: start.basedOn }) },
    createdAt: at,
    contributors: contributorsOf(repo, wanted, context, at, commit),
    task: start.task,
  };
  const begun = wanted.metadata === undefined ? empty : withMetadata(empty, wanted.metadata);
  const record = await issued(
    repo,
    rendered.record(begun, at),
    `${rendered.root}:${path}`,
    adapted.conditions,
    context,
  );
  const before = repo.index.ref(recordRef(repo.layout, path, key.workspace));
  const note = { subject: `${start.subject} (${name})`, action: wanted.source.type, made: commit };
  // A workspace can be used again after deletion; an old record must not count for the new draft.
  const recorded = { path, key, recordOid: before, statement: undefined };
  const { update, mark } = await writeRecord(repo, recorded, record, note, context);
  const updates: RefUpdate[] = [{ type: 'create', ref: draftRef(repo.layout, key), new: commit }, update];
  return { updates, name, marks: [mark], revokes: false };
}

function checkType(type: string): void {
  const problem = lookalikeProblem(type);
  if (problem !== undefined) throw new SluiceError('InvalidInput', `${problem}; use another one`);
}

/** The tree with the changes of the creator, and the conditions that they bring. */
async function adapt(
  repo: RepositoryContext,
  tree: Oid,
  path: string,
  { adapt: changes }: NewRevision,
): Promise<{ readonly tree: Oid; readonly conditions: readonly IssuedCondition[] }> {
  if (changes === undefined) return { tree, conditions: [] };
  const { files } = await readPackage(repo.git, `${tree}:${path}`, undefined);
  const { files: edits, kptfile, conditions } = await changes(files);
  for (const edit of kptfile) if (edit.op === 'addGate') checkType(edit.conditionType);
  const after = new Map<string, string | Uint8Array>(files);
  for (const [file, data] of edits) {
    if (data === null) after.delete(file);
    else after.set(file, data);
  }
  checkPackageSize(path, after, []);
  const treeEdits = [...edits].map(([file, data]) => [`${path}/${file}`, data === null ? null : { data }] as const);
  const changed = treeEdits.length === 0 ? tree : await repo.git.editTree(tree, new Map<string, TreeEdit>(treeEdits));
  const written = conditions.map((given) => ({ op: 'setCondition', condition: plainCondition(given) }) as const);
  return { tree: await withKptfile(repo, changed, path, [...kptfile, ...written]), conditions };
}

/** The record with the verdicts of conditions that the creator issued, bound to the rendered package. */
async function issued(
  repo: RepositoryContext,
  record: RevisionRecord,
  specification: string,
  conditions: readonly IssuedCondition[],
  context: RequestContext,
): Promise<RevisionRecord> {
  if (conditions.length === 0) return record;
  const [blob] = await repo.git.readObjects([`${specification}/Kptfile`]);
  const read = blob === undefined ? undefined : readKptfile(blob.data);
  const content = await readPackage(repo.git, specification, read?.ok === true ? read.kptfile : undefined);
  const at = timestamp(repo.clock.now());
  return conditions.reduce((next, given) => issueVerdict(next, given, content, context, at), record);
}

/**
 * A copy contains published content; all other content is that of its creator. Content that was published without the kernel is
 * that of an unknown user.
 */
function contributorsOf(
  { index }: RepositoryContext,
  { source, adapt }: NewRevision,
  context: RequestContext,
  at: string,
  commit: Oid,
): Contributor[] {
  const unknown = { actor: { name: PUSH_ACTOR }, face: 'git' } as const;
  const isUnknown = source.type === 'copy' && index.get(source.source)?.outOfBand !== undefined;
  const before = isUnknown ? withContributor([], unknown, at, commit) : [];
  return source.type === 'copy' && adapt === undefined ? before : withContributor(before, context, at, commit);
}

async function reportOverwritten(
  { git }: RepositoryContext,
  merge: OverwrittenBy,
  specification: string,
  context: RequestContext,
): Promise<string | undefined> {
  const overwritten = await stillOverwritten(merge, () => readPackageFiles(git, specification));
  for (const text of overwrittenTexts(overwritten))
    context.warn?.(`changed on both sides, and overwritten by ${merge.by}: ${text}`);
  return overwrittenText(merge.by, overwritten);
}

function startOf(
  repo: RepositoryContext,
  key: RevisionKey,
  source: RevisionSource,
  upstreams: UpstreamReader,
  context: RequestContext,
): Start | Promise<Start> {
  switch (source.type) {
    case 'init':
      return startInit(repo, key, source);
    case 'copy':
      return startCopy(repo, key, source);
    case 'clone':
      return startClone(repo, key, source, upstreams, context);
    case 'upgrade':
      return startUpgrade(repo, key, source, upstreams, context);
  }
}

/** The tree with the Kptfile of the package at `path` edited. */
async function withKptfile(
  repo: RepositoryContext,
  tree: Oid,
  path: string,
  edits: readonly KptfileEdit[],
): Promise<Oid> {
  if (edits.length === 0) return tree;
  const [blob] = await repo.git.readObjects([`${tree}:${path}/Kptfile`]);
  if (blob === undefined) throw new SluiceError('InvalidInput', `${path} has no Kptfile to put gates or metadata into`);
  const data = Buffer.from(editKptfileText(path, blob.data.toString('utf8'), edits));
  return repo.git.editTree(tree, new Map([[`${path}/Kptfile`, { data }]]));
}

/** The verdicts of a creator whose package has conditions in its Kptfile. */
async function givenIn(
  repo: RepositoryContext,
  specification: string,
  context: RequestContext,
  at: string,
): Promise<readonly Verdict[]> {
  const [blob] = await repo.git.readObjects([`${specification}/Kptfile`]);
  const result = blob === undefined ? undefined : readKptfile(blob.data);
  const conditions = result?.ok === true ? conditionsOf(result.kptfile) : new Map();
  if (result?.ok !== true || conditions.size === 0) return [];
  if ((await context.mayWriteStatus?.()) === false) {
    warnOfUnproven(context, [...conditions.keys()]);
    return [];
  }
  const content = await readPackage(repo.git, specification, result.kptfile);
  return syncVerdicts(emptyRecord(''), { conditions }, content, context, at).verdicts;
}
