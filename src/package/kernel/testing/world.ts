import type { Condition } from '../../../../kptfile-schema/index.ts';
import { timestamp } from '../../../foundation/time/clock.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { Actor } from '../../../resource/object/request-context.ts';
import { evaluateGates } from '../../model/gates/gates.ts';
import { issueVerdict, withdrawVerdict } from '../../model/gates/verdict.ts';
import { revisionName } from '../../model/identity/identity.ts';
import { deletionProposedRef, draftRef, parseRef, proposedRef } from '../../model/identity/layout.ts';
import type { EffectivePolicy } from '../../model/policy/policy.ts';
import type { PublicationStatement } from '../../model/record/commit-message.ts';
import { type Approval, emptyRecord, type RevisionRecord, withContributor } from '../../model/record/record.ts';
import type {
  Allowed,
  Decision,
  Lifecycle,
  MergedProposal,
  RevisionState,
} from '../../model/revision/revision-state.ts';
import { deletedContentScope } from '../../trust/ledger/trust-ledger.ts';
import { payloadOf, STATEMENT_VERSION } from '../../trust/statement/statement.ts';
import { fakeSignature } from '../../trust/testing/fake-signatures.ts';
import { decide } from '../decide.ts';
import { recordAfter } from '../record-after.ts';
import { stateFrom } from '../revision-state.ts';
import { mergeOf, onMainOf } from './on-main.ts';
import { inputsOf, PACKAGE, PATH, type PackageData, REPOSITORY, treeOf, without } from './package-data.ts';
import { LAYOUT, type ListedRevision, MAIN, recordRefOf, revisionKeyOf } from './places.ts';
import { recordAtTip } from './record-at-tip.ts';
import { Records, scope, signedBy } from './records.ts';
import { Refs } from './refs.ts';
import { faceOf, type WorldRequest } from './world-request.ts';

/**
 * One package in one repository without Git: refs, commits and records as values. The server reads before it changes them by the
 * plans of the kernel; pushed changes are in `refs` and `records` before it reads.
 */
export class World {
  readonly records = new Records(() => this.now);
  readonly store = new Refs(this.records);
  policy: EffectivePolicy;
  nestedWith: string | undefined;
  dependents: readonly string[] = [];
  #now = Date.parse('2026-01-01T00:00:00Z');
  /** RFC 3339. */
  at = timestamp(this.#now);

  constructor(policy: EffectivePolicy) {
    this.policy = policy;
    this.store.set(MAIN, this.store.commit({ data: undefined, parents: [], action: undefined }), true);
    this.look();
  }

  get refs(): ReadonlyMap<string, Oid> {
    return this.store.refs;
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#now;
  }

  pass(milliseconds: number): void {
    this.#now += milliseconds;
    this.at = timestamp(this.#now);
  }

  /** The server reads the refs. */
  look(): void {
    const found = new Map<string, Oid>();
    for (const [ref, oid] of this.refs) {
      const meaning = parseRef(LAYOUT, ref);
      if (meaning.kind === 'record') found.set(meaning.workspace, oid);
    }
    this.store.look();
    this.records.look(found, this.refs.get(MAIN));
  }

  list(): ListedRevision[] {
    const found: ListedRevision[] = [];
    for (const [ref, commit] of this.refs) {
      const meaning = parseRef(LAYOUT, ref);
      if (meaning.kind === 'draft')
        found.push({ workspace: meaning.workspace, lifecycle: 'Draft', revision: 0, commit, tag: undefined });
      if (meaning.kind === 'proposed')
        found.push({ workspace: meaning.workspace, lifecycle: 'Proposed', revision: 0, commit, tag: undefined });
      if (meaning.kind === 'published') {
        const workspace = this.store.workspaceOf(commit, meaning.version);
        found.push({ workspace, ...this.#published(meaning.version), revision: meaning.revision, commit, tag: ref });
      }
    }
    const head = this.refs.get(MAIN);
    if (head !== undefined && this.data(head) !== undefined) {
      found.push({ workspace: 'main', ...this.#published('main'), revision: -1, commit: head, tag: undefined });
    }
    return found.sort((a, b) => (a.workspace < b.workspace ? -1 : 1));
  }

  data(commit: Oid): PackageData | undefined {
    return this.store.commits.get(commit)?.data;
  }

  stateOf(revision: ListedRevision, merged?: MergedProposal): RevisionState {
    const data = this.data(revision.commit);
    const record = this.#record(revision);
    const nameOf = (workspace: string) => revisionName(revisionKeyOf(workspace));
    return stateFrom({
      layout: LAYOUT,
      revision: {
        ...{ name: nameOf(revision.workspace), key: revisionKeyOf(revision.workspace), ref: refOf(revision) },
        ...{ lifecycle: revision.lifecycle, revision: revision.revision, commit: revision.commit },
      },
      kptfile: data ?? { gates: [], conditions: new Map() },
      problem: data?.problem,
      record,
      inputs: inputsOf(data),
      ofPackage: this.list().map((other) => ({ ...other, name: nameOf(other.workspace) })),
      nestedWith: this.nestedWith,
      dependents: this.dependents,
      mainHead: this.refs.get(MAIN),
      merge: mergeOf(this, revision, record, merged),
      onMain: merged === undefined ? onMainOf(this, revision, record) : undefined,
      refAt: (name) => this.refs.get(name),
      tagConflict: (tag) => (this.refs.has(tag) ? tag : undefined),
    });
  }

  /** Runs a decision of the kernel and applies its plan. Throws if the plan does not fit the current refs. */
  request(revision: ListedRevision, asking: WorldRequest): Decision {
    const { action, actor, expectedCommit, reason, breakGlass, merged, byMerge } = asking;
    const state = this.stateOf(revision, merged);
    const face = faceOf(actor);
    const request = {
      ...{ action, actor, face, breakGlass },
      ...(expectedCommit === undefined ? {} : { expectedCommit }),
      ...(reason === undefined ? {} : { reason }),
      ...(merged === undefined ? {} : { merged }),
      ...(byMerge === undefined ? {} : { byMerge }),
    };
    const decision = decide(state, request, this.policy, this.at);
    if (!decision.allowed) return decision;
    this.#checkPlan(decision);
    const step = { action, by: actor.name, face, at: this.at, commit: revision.commit };
    const decidedOn = { state, record: this.#record(revision), approval: this.#approval(revision, asking) };
    const record = recordAfter(decision, decidedOn, step, this.policy);
    if (decision.approvals !== undefined) {
      this.#write(revision.workspace, record);
      return decision;
    }
    this.#apply(revision, asking, decision, record, state);
    this.look();
    return decision;
  }

  /** A commit by the server on a draft or proposed branch, with its record. */
  edit(revision: ListedRevision, actor: Actor, change: (data: PackageData) => PackageData): void {
    const record = this.#record(revision);
    const commit = this.#advance(revision, change, 'edit', true);
    const same = inputsOf(this.data(revision.commit)).content === inputsOf(this.data(commit)).content;
    const before = record.contributors ?? [];
    const context = { actor, face: faceOf(actor) };
    const contributors = same ? before : withContributor(before, context, this.at, revision.commit);
    this.#write(revision.workspace, { ...record, contributors, commit });
  }

  give(revision: ListedRevision, condition: Condition, actor: Actor): void {
    const record = this.#record(revision);
    const conditionsOf = ({ conditions }: PackageData) => new Map(conditions).set(condition.type, condition);
    const change = (data: PackageData) => ({ ...data, conditions: conditionsOf(data) });
    const commit = this.#advance(revision, change, 'condition', true);
    const inputs = inputsOf(this.data(commit));
    const next = issueVerdict({ ...record, commit }, condition, inputs, { actor, face: faceOf(actor) }, this.at);
    this.#write(revision.workspace, next);
  }

  withdraw(revision: ListedRevision, type: string): void {
    const record = this.#record(revision);
    const change = (data: PackageData) => ({ ...data, conditions: without(data.conditions, type) });
    const commit = this.#advance(revision, change, 'condition', true);
    this.#write(revision.workspace, withdrawVerdict({ ...record, commit }, type));
  }

  /** The server keeps what it knows of a draft, as it does when labels change. */
  keep(revision: ListedRevision): void {
    this.#write(revision.workspace, { ...this.#record(revision), commit: revision.commit });
  }

  /** A new draft by the server, with the verdicts of what it is a copy of. */
  create(workspace: string, data: PackageData, source: ListedRevision | undefined, actor: Actor): void {
    const verdicts = source === undefined ? [] : this.#record(source).verdicts;
    const commit = this.store.commit({ data, parents: this.store.mainParents(), action: 'create', time: this.at });
    this.store.set(draftRef(LAYOUT, revisionKeyOf(workspace)), commit, true);
    const context = { actor, face: faceOf(actor) };
    const contributors = source === undefined ? withContributor([], context, this.at, commit) : [];
    const [head] = this.store.mainParents();
    const from = source === undefined ? undefined : this.data(source.commit);
    const base =
      head === undefined ? {} : { base: { commit: head, ...(from === undefined ? {} : { tree: treeOf(from) }) } };
    this.#write(workspace, { ...emptyRecord(commit), verdicts, contributors, ...base }, true);
  }

  /** A push that merges the main branch. */
  pushMerge(revision: ListedRevision, change: (data: PackageData) => PackageData): void {
    this.#advance(revision, change, undefined, false, this.store.mainParents());
  }

  /** The server bases a draft on the main branch as it is. */
  rebase(revision: ListedRevision, head: Oid): void {
    const record = this.#record(revision);
    const commit = this.#advance(revision, (data) => data, 'edit', true, [head]);
    const data = this.data(head);
    const base = { commit: head, ...(data === undefined ? {} : { tree: treeOf(data) }) };
    this.#write(revision.workspace, { ...record, commit, base });
  }

  /** A commit by another actor on a draft or proposed branch. */
  push(revision: ListedRevision, change: (data: PackageData) => PackageData, action?: string): void {
    this.#advance(revision, change, action, false);
  }

  #published(version: string): { lifecycle: Lifecycle } {
    return {
      lifecycle: this.refs.has(deletionProposedRef(LAYOUT, PACKAGE, version)) ? 'DeletionProposed' : 'Published',
    };
  }

  /** Returns the current record of a revision. */
  #record(revision: ListedRevision): RevisionRecord {
    return recordAtTip(this, revision);
  }

  #write(workspace: string, record: RevisionRecord, isNew = false): void {
    const ref = recordRefOf(workspace);
    const parent = this.refs.get(ref);
    const current = isNew ? undefined : this.records.read(workspace, parent).fact;
    this.store.set(ref, this.records.write(workspace, parent, current, record), true);
  }

  #approval({ commit }: ListedRevision, { actor }: WorldRequest): Approval {
    const data = this.data(commit);
    const tree = data === undefined ? '' : treeOf(data);
    return { subject: actor.name, content: inputsOf(data).content, tree, at: this.at, face: faceOf(actor) };
  }

  #checkPlan({ plan }: Allowed): void {
    const touched = new Set<string>();
    for (const { ref, expect } of plan) {
      if (touched.has(ref)) throw new Error(`the plan touches ${ref} twice`);
      touched.add(ref);
      if ((this.refs.get(ref) ?? null) !== expect)
        throw new Error(`the plan expects ${expect} at ${ref}, there is ${this.refs.get(ref)}`);
    }
  }

  #apply(
    revision: ListedRevision,
    asking: WorldRequest,
    decision: Allowed,
    record: RevisionRecord,
    state: RevisionState,
  ): void {
    const { workspace } = revision;
    const current = this.records.read(workspace, this.refs.get(recordRefOf(workspace))).fact;
    let made: Oid | undefined;
    for (const { ref, become } of decision.plan) {
      if (become.kind === 'absent') this.store.set(ref, undefined, true);
      else if (become.kind === 'commit') this.store.set(ref, become.oid, true);
      else {
        const parents = this.store.mainParents();
        made ??=
          become.kind === 'removal'
            ? this.store.commit({ data: undefined, parents, action: 'delete', time: this.at })
            : this.#publish(revision, asking, decision, record, state, become.kind === 'statement');
        this.store.set(ref, made, true);
      }
    }
    const isPublished = asking.action === 'approve';
    if (decision.next !== undefined && !isPublished) this.#write(workspace, { ...record, commit: revision.commit });
    else {
      this.store.set(recordRefOf(workspace), undefined, true);
      if (!isPublished) {
        this.records.end(workspace, current);
        if (revision.tag !== undefined) this.#keepDeleted(revision);
      }
    }
  }

  /** The main branch keeps its files, which are published content no more. */
  #keepDeleted({ commit }: ListedRevision): void {
    const [data, head] = [this.data(commit), this.refs.get(MAIN)];
    const onMain = head === undefined ? undefined : this.data(head);
    if (data === undefined || onMain === undefined || treeOf(data) !== treeOf(onMain)) return;
    const scope = { ...deletedContentScope(PATH), repository: REPOSITORY };
    const sequence = (this.records.trust.mark(scope)?.sequence ?? 0) + 1;
    this.records.trust.raise([{ scope, sequence, digest: treeOf(data), proven: true }], true);
  }

  /** The approval commit with its statement, or the commit of the Git host with a tag that has it. */
  #publish(
    revision: ListedRevision,
    { actor, reason, merged, isShared }: WorldRequest,
    { next, bypassed, brokeGlass, mergeBypass, judgedAt = this.at }: Allowed,
    { verdicts, steps, contributors = [], approvals = [] }: RevisionRecord,
    state: RevisionState,
    isMerged: boolean,
  ): Oid {
    const { workspace, commit } = revision;
    const data = this.data(commit);
    const published = isMerged && merged !== undefined ? this.data(merged.commit) : data;
    if (data === undefined || published === undefined) throw new Error('nothing to publish');
    const current = this.records.read(workspace, this.refs.get(recordRefOf(workspace))).fact;
    const onMain = this.store.mainParents();
    const shared =
      isShared === true && !isMerged
        ? this.store.commit({
            data,
            parents: [...onMain, this.#otherDraft(), commit],
            action: 'approve',
            time: this.at,
          })
        : undefined;
    const statement: PublicationStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: REPOSITORY, ...scope(workspace) },
      ...this.records.trust.next(scope(workspace), current),
      ...{ revision: next?.revision ?? 0, tree: treeOf(published), draft: commit },
      ...{ branch: LAYOUT.branch, onto: (isMerged ? state.merge?.onto : onMain[0]) ?? '' },
      ...(shared === undefined ? {} : { sharedCommit: shared }),
      record: {
        ...{ verdicts, steps, contributors, approvals, content: state.facts.inputs.content },
        gates: evaluateGates(state.facts, this.policy, judgedAt).map((gate) => ({
          ...{ type: gate.type, requiredBy: gate.requiredBy, state: gate.state },
        })),
        ...(bypassed.length === 0 || mergeBypass?.gates === true ? {} : { gatesBypassed: true }),
        ...(mergeBypass === undefined ? {} : { mergeBypass }),
        ...(brokeGlass === true ? { breakGlass: { by: actor.name, reason: reason ?? '' } } : {}),
      },
    };
    const { key } = this.records;
    const signature = fakeSignature(key, payloadOf(statement));
    this.records.raise(signedBy(statement, key));
    const signed = { statement: { statement, signature }, workspace, revision: statement.revision };
    if (isMerged && merged !== undefined) {
      this.store.annotate(merged.commit, signed);
      return merged.commit;
    }
    if (shared !== undefined) {
      this.store.annotate(shared, signed);
      return shared;
    }
    return this.store.commit({ data, parents: [...onMain, commit], action: 'approve', time: this.at, ...signed });
  }

  /** The proposal of another package. */
  #otherDraft(): Oid {
    const parents = this.store.mainParents();
    return this.store.commit({ data: undefined, parents, action: 'create', time: this.at });
  }

  #advance(
    revision: ListedRevision,
    change: (data: PackageData) => PackageData,
    action: string | undefined,
    byServer: boolean,
    merged: readonly Oid[] = [],
  ): Oid {
    const data = this.data(revision.commit);
    if (data === undefined) throw new Error(`${revision.workspace} holds nothing`);
    const commit = this.store.commit({
      data: change(data),
      parents: [revision.commit, ...merged],
      action,
      time: this.at,
    });
    const key = revisionKeyOf(revision.workspace);
    this.store.set(revision.lifecycle === 'Draft' ? draftRef(LAYOUT, key) : proposedRef(LAYOUT, key), commit, byServer);
    return commit;
  }
}

/** The ref that shows a revision. */
function refOf({ workspace, lifecycle, tag, revision }: ListedRevision): string {
  if (tag !== undefined) return tag;
  if (revision === -1) return MAIN;
  const key = revisionKeyOf(workspace);
  return lifecycle === 'Draft' ? draftRef(LAYOUT, key) : proposedRef(LAYOUT, key);
}
