import type { Condition } from '../../../../kptfile-schema/index.ts';
import type { Oid, RefChange } from '../../../git/git-repository.ts';
import type { Actor, Face } from '../../../resource/request-context.ts';
import {
  deletionProposedRef,
  draftRef,
  mainRef,
  parseRef,
  proposedRef,
  RECORD_REFS,
  type RepositoryLayout,
  recordRef,
  tagRef,
} from '../../layout.ts';
import type { EffectivePolicy } from '../../policy.ts';
import { emptyRecord, type RevisionRecord, withStep } from '../../record.ts';
import { giveVerdict, PUSH_ACTOR, recordAtTip, withdrawVerdict } from '../../verdict.ts';
import type { Knowledge } from '../classify.ts';
import { decide } from '../decide.ts';
import type { Action, Decision, Lifecycle, RevisionState } from '../types.ts';
import { type CommitData, factsOf, inputsOf, PACKAGE, type PackageData, proposerOf, without } from './package-data.ts';

export interface Listed {
  readonly workspace: string;
  readonly lifecycle: Lifecycle;
  readonly revision: number;
  readonly commit: Oid;
  readonly tag: string | undefined;
}

export const LAYOUT: RepositoryLayout = { branch: 'main', directory: 'dir', recordPrefix: RECORD_REFS };
const MAIN = mainRef(LAYOUT);
const NOW = '2026-01-01T00:00:00Z';

const keyOf = (workspace: string) => ({ repository: 'r', package: PACKAGE, workspace });
/** Stands for the UID. */
export const uidOf = (workspace: string) => `uid-${workspace}`;

/** One package in one repository without Git: refs, commits and records as values, changed only by plans of the kernel and by pushes. */
export class World {
  readonly refs = new Map<string, Oid>();
  readonly #commits = new Map<Oid, CommitData>();
  readonly #records = new Map<string, RevisionRecord>();
  /** What the kernel decided, per ref, for `decided`. */
  readonly #journal = new Map<string, { before: Oid | undefined; after: Oid | undefined }[]>();
  #serial = 0;
  #recordSerial = 0;
  policy: EffectivePolicy;
  nestedWith: string | undefined;
  dependents: readonly string[] = [];

  constructor(policy: EffectivePolicy) {
    this.policy = policy;
    this.refs.set(MAIN, this.#commit({ data: undefined, parents: [], action: undefined }));
  }

  /** Object id of the commit made last. */
  get last(): Oid {
    return `c${this.#serial}`;
  }

  list(): Listed[] {
    const found: Listed[] = [];
    for (const [ref, commit] of this.refs) {
      const meaning = parseRef(LAYOUT, ref);
      if (meaning.kind === 'draft')
        found.push({ workspace: meaning.workspace, lifecycle: 'Draft', revision: 0, commit, tag: undefined });
      if (meaning.kind === 'proposed')
        found.push({ workspace: meaning.workspace, lifecycle: 'Proposed', revision: 0, commit, tag: undefined });
      if (meaning.kind === 'published') {
        const workspace = this.#commits.get(commit)?.workspace ?? meaning.version;
        found.push({ workspace, ...this.#published(meaning.version), revision: meaning.revision, commit, tag: ref });
      }
    }
    const head = this.refs.get(MAIN);
    if (head !== undefined && this.#commits.get(head)?.data !== undefined) {
      found.push({ workspace: 'main', ...this.#published('main'), revision: -1, commit: head, tag: undefined });
    }
    return found.sort((a, b) => (a.workspace < b.workspace ? -1 : 1));
  }

  data(commit: Oid): PackageData | undefined {
    return this.#commits.get(commit)?.data;
  }

  stateOf(revision: Listed): RevisionState {
    const data = this.data(revision.commit);
    const key = keyOf(revision.workspace);
    const mark = this.#mark(revision);
    const record = this.#record(revision);
    return {
      name: `r.net.upf.${revision.workspace}`,
      lifecycle: revision.lifecycle,
      revision: revision.revision,
      commit: revision.commit,
      problem: data?.problem,
      facts: {
        gates: data?.gates ?? [],
        conditions: data?.conditions ?? new Map(),
        record,
        inputs: inputsOf(data),
      },
      proposedBy: proposerOf(record),
      siblings: this.list()
        .filter((other) => other.workspace !== revision.workspace)
        .map((other) => ({ name: other.workspace, lifecycle: other.lifecycle, revision: other.revision })),
      nestedWith: this.nestedWith,
      dependents: this.dependents,
      refs: {
        main: MAIN,
        draft: draftRef(LAYOUT, key),
        proposed: proposedRef(LAYOUT, key),
        tag: revision.tag,
        deletionProposed: mark,
        tagFor: (number) => tagRef(LAYOUT, PACKAGE, `v${number}`),
      },
      mainHead: this.refs.get(MAIN),
      deletionProposed: this.refs.get(mark),
    };
  }

  /** Asks the kernel and does what it says. Throws if the plan does not fit the refs as they are. */
  request(revision: Listed, action: Action, actor: Actor, expectedCommit: Oid | undefined): Decision {
    const state = this.stateOf(revision);
    const request = { action, actor, face: 'cli' as Face, ...(expectedCommit === undefined ? {} : { expectedCommit }) };
    const decision = decide(state, request, this.policy, NOW);
    if (!decision.allowed) return decision;
    const record = withStep(this.#record(revision) ?? emptyRecord(revision.commit), {
      action,
      by: actor.name,
      face: 'cli',
      at: NOW,
    });
    const touched = new Set<string>();
    let made: Oid | undefined;
    for (const { ref, expect } of decision.plan) {
      if (touched.has(ref)) throw new Error(`the plan touches ${ref} twice`);
      touched.add(ref);
      if ((this.refs.get(ref) ?? null) !== expect)
        throw new Error(`the plan expects ${expect} at ${ref}, there is ${this.refs.get(ref)}`);
    }
    for (const { ref, become } of decision.plan) {
      if (become.kind === 'absent') this.#set(ref, undefined, true);
      else if (become.kind === 'commit') this.#set(ref, become.oid, true);
      else {
        made ??= this.#commit(this.#kernelCommit(become.kind, revision, decision, record));
        this.#set(ref, made, true);
      }
    }
    const ends = decision.next === undefined || action === 'approve';
    if (revision.lifecycle === 'Draft' || revision.lifecycle === 'Proposed')
      this.#keep(revision.workspace, ends ? undefined : record);
    return decision;
  }

  /** A commit by Sluice on a draft or proposed branch, with its record. */
  edit(revision: Listed, change: (data: PackageData) => PackageData): void {
    const record = this.#record(revision);
    const commit = this.#advance(revision, change, 'edit', true);
    if (commit !== undefined && record !== undefined) this.#keep(revision.workspace, { ...record, commit });
  }

  give(revision: Listed, condition: Condition, actor: Actor): void {
    const record = this.#record(revision);
    const commit = this.#advance(
      revision,
      (data) => ({ ...data, conditions: new Map(data.conditions).set(condition.type, condition) }),
      'condition',
      true,
    );
    if (commit === undefined || record === undefined) return;
    const inputs = inputsOf(this.data(commit));
    this.#keep(revision.workspace, giveVerdict({ ...record, commit }, condition, inputs, { actor, face: 'cli' }, NOW));
  }

  withdraw(revision: Listed, type: string): void {
    const record = this.#record(revision);
    const commit = this.#advance(
      revision,
      (data) => ({ ...data, conditions: without(data.conditions, type) }),
      'condition',
      true,
    );
    if (commit !== undefined && record !== undefined)
      this.#keep(revision.workspace, withdrawVerdict({ ...record, commit }, type));
  }

  /** A new draft by Sluice, with the verdicts of what it is a copy of. */
  create(workspace: string, data: PackageData, source: Listed | undefined): void {
    const record = source === undefined ? undefined : this.#record(source);
    const commit = this.#commit({ data, parents: this.#mainParents(), action: 'create' });
    this.#set(draftRef(LAYOUT, keyOf(workspace)), commit, true);
    this.#keep(workspace, { ...emptyRecord(commit), verdicts: record?.verdicts ?? [] });
  }

  /** A commit by somebody else on a draft or proposed branch, which Sluice takes in. */
  push(revision: Listed, change: (data: PackageData) => PackageData): void {
    const commit = this.#advance(revision, change, undefined, false);
    if (commit !== undefined) this.#takeIn({ ...revision, commit });
  }

  pushDraft(workspace: string, data: PackageData): void {
    const commit = this.#commit({ data, parents: this.#mainParents(), action: undefined });
    this.#set(draftRef(LAYOUT, keyOf(workspace)), commit, false);
    this.#takeIn({ workspace, lifecycle: 'Draft', revision: 0, commit, tag: undefined });
  }

  /** A plain push that renames a draft branch to a proposed one, or back. */
  pushMove(revision: Listed): void {
    const draft = draftRef(LAYOUT, keyOf(revision.workspace));
    const proposed = proposedRef(LAYOUT, keyOf(revision.workspace));
    this.#set(revision.lifecycle === 'Draft' ? draft : proposed, undefined, false);
    this.#set(revision.lifecycle === 'Draft' ? proposed : draft, revision.commit, false);
    const step = { action: 'move', by: PUSH_ACTOR, face: 'git', at: NOW };
    this.#keep(revision.workspace, withStep(this.#record(revision) ?? emptyRecord(revision.commit), step));
  }

  /** Anything else that others may do to a ref. */
  pushRef(ref: string, data: PackageData | undefined): void {
    const old = this.refs.get(ref);
    this.#set(ref, this.#commit({ data, parents: old === undefined ? [] : [old], action: undefined }), false);
  }

  pushDelete(ref: string): void {
    this.#set(ref, undefined, false);
    const meaning = parseRef(LAYOUT, ref);
    if (meaning.kind === 'draft' || meaning.kind === 'proposed') this.#keep(meaning.workspace, undefined);
  }

  knowledge(): Knowledge {
    return {
      publication: (ref, oid) => {
        const commit = this.#commits.get(oid);
        const meaning = parseRef(LAYOUT, ref);
        if (commit === undefined || meaning.kind !== 'published') return undefined;
        const { gates, conditions } = commit.data ?? { gates: [], conditions: new Map() };
        const facts = factsOf(commit);
        const content = inputsOf(commit.data).content;
        return {
          parents: commit.parents.length,
          subject: '',
          commit: facts,
          path: `dir/${PACKAGE}`,
          version: meaning.version,
          gates,
          conditions,
          content,
        };
      },
      isAncestor: (older, newer) => this.#isAncestor(older, newer),
      ownCommit: (oid) => this.#commits.get(oid)?.action !== undefined || oid.startsWith('record'),
      mainCommits: (older, newer) => {
        const line: { oid: Oid; parents: number; action: string | undefined }[] = [];
        for (let oid: Oid | undefined = newer; oid !== older; ) {
          const commit: CommitData | undefined = oid === undefined ? undefined : this.#commits.get(oid);
          if (oid === undefined || commit === undefined) return undefined;
          line.push({ oid, parents: commit.parents.length, action: commit.action });
          oid = commit.parents[0];
        }
        return line;
      },
      revisionOf: (uid) => (uid.startsWith('uid-') ? { package: PACKAGE, workspace: uid.slice(4) } : undefined),
      decided: (change) => this.#decided(change),
    };
  }

  #published(version: string): { lifecycle: Lifecycle } {
    return {
      lifecycle: this.refs.has(deletionProposedRef(LAYOUT, PACKAGE, version)) ? 'DeletionProposed' : 'Published',
    };
  }

  #mark(revision: Listed): string {
    return deletionProposedRef(LAYOUT, PACKAGE, revision.tag?.split('/').at(-1) ?? revision.workspace);
  }

  #record(revision: Listed): RevisionRecord | undefined {
    if (revision.lifecycle === 'Published' || revision.lifecycle === 'DeletionProposed')
      return this.#commits.get(revision.commit)?.record;
    return this.#records.get(revision.workspace);
  }

  #takeIn(revision: Listed): void {
    const data = this.data(revision.commit);
    const tip = { commit: revision.commit, madeBySluice: false, time: NOW };
    this.#keep(
      revision.workspace,
      recordAtTip(this.#records.get(revision.workspace), tip, data?.conditions ?? new Map(), inputsOf(data)),
    );
  }

  #keep(workspace: string, record: RevisionRecord | undefined): void {
    const ref = recordRef(LAYOUT, uidOf(workspace));
    if (record === undefined) this.#records.delete(workspace);
    else this.#records.set(workspace, record);
    this.#recordSerial += 1;
    this.#set(ref, record === undefined ? undefined : `record${this.#recordSerial}`, true);
  }

  #advance(
    revision: Listed,
    change: (data: PackageData) => PackageData,
    action: string | undefined,
    decided: boolean,
  ): Oid | undefined {
    const data = this.data(revision.commit);
    if (data === undefined) return undefined;
    const commit = this.#commit({ data: change(data), parents: [revision.commit], action });
    const key = keyOf(revision.workspace);
    this.#set(revision.lifecycle === 'Draft' ? draftRef(LAYOUT, key) : proposedRef(LAYOUT, key), commit, decided);
    return commit;
  }

  #kernelCommit(
    kind: 'approval' | 'removal',
    revision: Listed,
    decision: Decision,
    record: RevisionRecord,
  ): CommitData {
    const parents = this.#mainParents();
    if (kind === 'removal') return { data: undefined, parents, action: 'delete' };
    return {
      data: this.data(revision.commit),
      parents: [...parents, revision.commit],
      action: 'approve',
      workspace: revision.workspace,
      revision: decision.allowed ? (decision.next?.revision ?? 0) : 0,
      record,
      bypassed: decision.allowed && decision.bypassed.length > 0,
    };
  }

  #mainParents(): Oid[] {
    const head = this.refs.get(MAIN);
    return head === undefined ? [] : [head];
  }

  #commit(data: CommitData): Oid {
    this.#serial += 1;
    this.#commits.set(this.last, data);
    return this.last;
  }

  #set(ref: string, oid: Oid | undefined, decided: boolean): void {
    const before = this.refs.get(ref);
    if (before === oid) return;
    if (oid === undefined) this.refs.delete(ref);
    else this.refs.set(ref, oid);
    if (!decided) return;
    const steps = this.#journal.get(ref);
    if (steps === undefined) this.#journal.set(ref, [{ before, after: oid }]);
    else steps.push({ before, after: oid });
  }

  /** Follows the steps of the journal from one value to the other. */
  #decided({ name, before, after }: RefChange): boolean {
    const steps = this.#journal.get(name) ?? [];
    for (const [start, first] of steps.entries()) {
      if (first.before !== before) continue;
      let value = first.before;
      for (const step of steps.slice(start)) {
        if (step.before !== value) break;
        value = step.after;
        if (value === after) return true;
      }
    }
    return false;
  }

  #isAncestor(older: Oid, newer: Oid): boolean {
    if (older === newer) return true;
    if (older.startsWith('record') && newer.startsWith('record')) return true;
    return (this.#commits.get(newer)?.parents ?? []).some((parent) => this.#isAncestor(older, parent));
  }
}
