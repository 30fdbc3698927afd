import type { EffectivePolicy } from '../../model/policy/policy.ts';
import { inputsSeen } from './inputs-seen.ts';
import type { ModelRecords } from './model-records.ts';
import { copyOf, type ModelRecord, type ModelRequest, type ModelRevision, type ModelVerdict } from './model-state.ts';
import { PACKAGE, treeOf } from './package-data.ts';

const HOUR_MS = 3_600_000;

/*
 * The rules of the lifecycle as a second, plainer program, to hold the kernel against. Written from the rules in words:
 *
 * - Draft → Proposed → Published; back from Proposed by reject. A rejected revision whose branch others restored can be proposed
 *   again. A published revision is first proposed for deletion, which can be undone, then deleted. Drafts and proposed revisions
 *   can be deleted at once.
 * - Approval gives the next number, moves the main branch and puts a tag on the same commit; the branch is gone then.
 * - A gate is a condition type of the Kptfile or of a policy. It is open if the condition is True, and was given as True, by one
 *   whom every policy lets give it, not too long ago, for what the package holds now: the object that the type names, if there is
 *   one, else all.
 * - All gates are asked for at approval; at proposal those that a policy marks approve-only are not. What was a gate at the proposal
 *   stays one until it is rejected; if that is not known any more, nothing can be approved.
 * - Closed gates forbid the step only where the repository enforces them. At approval an actor whom a policy names may pass them,
 *   with a reason.
 * - Where a policy forbids that people approve their own changes, neither who proposed nor who changed the content approves, and no
 *   controller does. If one of them is not known, two people have to approve the same content.
 * - A Git host may merge a proposal. The commit that it made is published in the place of one of the server if it lies on the main
 *   branch, after another commit, and holds just what is proposed. If gates or approvals are missing, this is refused, or noted as a
 *   publication that does not count, as the request says.
 *   What reviewers objected to counts as such a lack.
 * - Where the host publishes by a merge, an approval that would publish is noted as a decision. For an hour the merge is judged as of then, if
 *   the same actor publishes it, and it may hold the package as it was decided on, if only conditions changed since.
 * - An approval does not replace what others wrote into the package on the main branch since: what is there has to be what is
 *   proposed, what that is derived from, or the latest publication. A package that others removed there is not restored.
 * - The commit that the actor evaluated must be the current one.
 * - What is known beyond the branch itself is what the server wrote last, as long as that is there: see model-records.ts.
 */
export class Model {
  readonly entries = new Map<string, ModelRevision>();
  readonly records: ModelRecords;
  /** Deletion marks by version, and what they point to. */
  readonly marks = new Map<string, string>();
  /** Head of the main branch; undefined if it does not exist. */
  main: string | undefined;
  policy: EffectivePolicy;
  /** Tree of a publication that was deleted in order, while the main branch had it. */
  deletedContent: string | undefined;
  nested = false;
  inUse = false;
  /** Milliseconds since the epoch. */
  now = 0;

  constructor(policy: EffectivePolicy, main: string, records: ModelRecords) {
    this.policy = policy;
    this.main = main;
    this.records = records;
  }

  kept(workspace: string): ModelRecord {
    const entry = this.entries.get(workspace);
    if (entry === undefined) throw new Error(`the model does not know ${workspace}`);
    return this.records.current(workspace, entry, this.tags());
  }

  tags(): ModelRevision[] {
    return [...this.entries.values()].filter(({ place }) => place === 'tag');
  }

  give(entry: ModelRevision, kept: ModelRecord, given: Omit<ModelVerdict, 'saw' | 'at'> & { type: string }): void {
    const { type, status, text, by, groups, pushed } = given;
    const saw = inputsSeen(type, entry);
    entry.conditions.set(type, { status, text });
    const before = kept.given.get(type);
    const same =
      before?.status === status &&
      before.text === text &&
      before.by === by &&
      before.pushed === pushed &&
      before.saw === saw;
    if (!same) kept.given.set(type, { status, text, by, groups, pushed, saw, at: this.now });
  }

  isOpen(entry: ModelRevision, kept: ModelRecord, type: string, now = this.now): boolean {
    const given = kept.given.get(type);
    if (entry.conditions.get(type)?.status !== 'True' || given?.status !== 'True') return false;
    return this.#mayGive(given, type) && this.#sees(entry, given) && !this.#isOver(given, type, now);
  }

  /** The time by which the gates of a request are judged. */
  judgedAt(entry: ModelRevision, kept: ModelRecord, { actor, merged }: ModelRequest): number {
    const { content, decided } = kept.approvals.get(actor) ?? {};
    if (merged === undefined || decided === undefined || content !== inputsSeen('', entry)) return this.now;
    return this.now - decided.at < HOUR_MS ? decided.at : this.now;
  }

  /** Whether all gates of an approval are open. */
  areOpen(entry: ModelRevision, kept: ModelRecord, asked: ModelRequest): boolean {
    const now = this.judgedAt(entry, kept, asked);
    return this.gates(entry, kept, 'approve').every((type) => this.isOpen(entry, kept, type, now));
  }

  /** The required gates of a step. */
  gates(entry: ModelRevision, kept: ModelRecord, step: string): string[] {
    const proposed = entry.place === 'proposed' ? kept.required : [];
    const types = new Set([
      ...entry.gates,
      ...this.policy.requiredGates.map((gate) => gate.conditionType),
      ...proposed,
    ]);
    if (step === 'approve') return [...types];
    return [...types].filter((type) => {
      const rules = this.policy.requiredGates.filter((gate) => gate.conditionType === type);
      return rules.length === 0 || rules.some((gate) => !gate.approveOnly);
    });
  }

  isMarked(entry: ModelRevision): boolean {
    return (entry.place === 'tag' || entry.place === 'main') && this.marks.has(entry.version);
  }

  /** The codes of all reasons against a request; none means that it is allowed. */
  against(entry: ModelRevision, kept: ModelRecord, asked: ModelRequest): Set<string> {
    if (asked.expected !== undefined && asked.expected !== entry.commit) return new Set(['Conflict']);
    const published = entry.place === 'tag' || entry.place === 'main';
    const marked = this.isMarked(entry);
    const fits: Record<string, boolean> = {
      propose: entry.place === 'draft' || (entry.place === 'proposed' && kept.rejected),
      approve: entry.place === 'proposed',
      reject: entry.place === 'proposed' || marked,
      'propose-deletion': published && !marked,
      'undo-deletion': marked,
      delete: !published || marked,
    };
    if (fits[asked.action] !== true) return new Set(['WrongState']);
    const reasons = new Set<string>();
    if (asked.action === 'delete' && published && this.inUse) reasons.add('InUse');
    if (asked.action !== 'propose' && asked.action !== 'approve') return reasons;
    if (entry.broken) reasons.add('Unreadable');
    if (this.nested) reasons.add('NestedPackage');
    if (asked.action === 'approve') {
      if (this.main === undefined) reasons.add('Conflict');
      if (this.nextNumber() > 999_999_999) reasons.add('TagConflict');
      if (kept.lost) reasons.add('WrongState');
      if (asked.merged === undefined && this.#isConflict(entry, kept)) reasons.add('Conflicted');
      if (asked.merged !== undefined && !this.#isMerge(entry, kept, asked.merged.commit)) reasons.add('NotMerged');
      if (asked.merged?.recordBypass !== true) {
        if (asked.merged?.objection !== undefined) reasons.add('ChangesRequested');
        const flaw = this.unapproved(entry, kept, asked);
        if (flaw !== undefined && (flaw === 'NotAllowed' || asked.merged !== undefined)) reasons.add(flaw);
      }
    }
    // A proposal of a package that cannot be proposed does not evaluate gates; an approval reports all reasons.
    const result = asked.action === 'approve' || reasons.size === 0;
    if (this.policy.enforcement === 'enforce' && result) this.#addClosed(entry, kept, asked, reasons);
    return reasons;
  }

  /** The reason why the approvals are not enough with this one. */
  unapproved(entry: ModelRevision, kept: ModelRecord, asked: ModelRequest): 'NotAllowed' | 'NotApproved' | undefined {
    if (this.policy.forbidSelfApproval && !this.#isOther(kept, asked)) return 'NotAllowed';
    const { given, needed } = this.approvals(entry, kept, asked);
    return given < needed ? 'NotApproved' : undefined;
  }

  /** True for an approval of a merge that does not count: the Git host passed by enforced gates, or by approvals. */
  isBypass(entry: ModelRevision, kept: ModelRecord, asked: ModelRequest): boolean {
    if (asked.merged === undefined) return false;
    const closed = !this.areOpen(entry, kept, asked) && this.policy.enforcement === 'enforce' && !asked.breakGlass;
    return closed || asked.merged.objection !== undefined || this.unapproved(entry, kept, asked) !== undefined;
  }

  #isMerge(entry: ModelRevision, kept: ModelRecord, commit: string): boolean {
    const { data, parents = [] } = this.records.commitAt(commit) ?? {};
    const proposed = this.records.commitAt(entry.commit)?.data;
    const trees = new Set(proposed === undefined ? [] : [treeOf(proposed)]);
    for (const { content, decided } of kept.approvals.values())
      if (decided !== undefined && content === inputsSeen('', entry)) trees.add(decided.tree);
    const same = data !== undefined && trees.has(treeOf(data));
    return same && parents.length > 0 && this.records.isOnLine(commit, this.main) && !this.#isBelowLast(commit);
  }

  /** The highest number is the newest content of the main branch. */
  #isBelowLast(commit: string): boolean {
    const tags = [...this.entries.values()].filter(({ place, number }) => place === 'tag' && number > 0);
    const { commit: last = commit } = tags.sort((a, b) => b.number - a.number)[0] ?? {};
    return last !== commit && this.records.isOnLine(last, this.main) && this.records.isOnLine(commit, last);
  }

  #isConflict({ commit }: ModelRevision, { base }: ModelRecord): boolean {
    if (this.main === undefined) return false;
    const there = this.records.treeAt(this.main);
    if (there === this.records.treeAt(commit)) return false;
    const common = this.records.lastCommon(commit, this.main);
    const bases = [base?.commit, common].filter((one) => one !== undefined);
    if (there === undefined) {
      const trees = bases.map((one) => this.records.treeAt(one));
      return trees.length > 0 && !trees.includes(undefined);
    }
    const [latest] = this.tags()
      .filter(({ number }) => number > 0)
      .sort((a, b) => b.number - a.number);
    const known = [latest && this.records.treeAt(latest.commit), this.deletedContent, base?.tree];
    // What a push merged; the server's own draft replaced what was there when it was made.
    if (common !== undefined && common !== base?.commit) known.push(this.records.treeAt(common));
    return !known.includes(there);
  }

  /** Number of users who have approved this content including this approval, and number of required users. */
  approvals(entry: ModelRevision, kept: ModelRecord, { actor }: ModelRequest): { given: number; needed: number } {
    if (!this.policy.forbidSelfApproval) return { given: 1, needed: 1 };
    const people = new Set([actor]);
    for (const [person, { content }] of kept.approvals) {
      const isOther = person !== kept.proposer && !kept.contributors.has(person) && !person.startsWith('controller:');
      if (isOther && content === inputsSeen('', entry)) people.add(person);
    }
    const isUnknown = kept.proposer === undefined || kept.contributors.has('push');
    return { given: people.size, needed: isUnknown ? 2 : 1 };
  }

  nextNumber(): number {
    let next = 1;
    for (const entry of this.entries.values())
      if (entry.place === 'tag' && entry.number >= next) next = entry.number + 1;
    return next;
  }

  /** Does what was allowed to a revision; `made` is the commit that an approval or a removal made. */
  apply(workspace: string, entry: ModelRevision, kept: ModelRecord, asked: ModelRequest, made: string): void {
    switch (asked.action) {
      case 'propose':
        Object.assign(kept, {
          required: this.gates(entry, kept, 'approve'),
          lost: false,
          rejected: false,
          proposer: asked.actor,
        });
        kept.approvals.clear();
        entry.place = 'proposed';
        return;
      case 'reject':
        if (entry.place === 'proposed') {
          entry.place = 'draft';
          Object.assign(kept, { required: [], lost: false, rejected: true, proposer: undefined });
          kept.approvals.clear();
        } else this.marks.delete(entry.version);
        return;
      case 'approve': {
        const number = this.nextNumber();
        if (asked.merged !== undefined) {
          Object.assign(entry, { place: 'tag', version: `v${number}`, number, commit: asked.merged.commit });
          return;
        }
        this.entries.set('main', { ...copyOf(entry), place: 'main', version: 'main', number: -1, commit: made });
        Object.assign(entry, { place: 'tag', version: `v${number}`, number, commit: made });
        this.main = made;
        return;
      }
      case 'propose-deletion':
        this.marks.set(entry.version, entry.commit);
        return;
      case 'undo-deletion':
        this.marks.delete(entry.version);
        return;
      case 'delete':
        this.#keepDeleted(entry);
        this.entries.delete(workspace);
        if (this.isMarked(entry)) this.marks.delete(entry.version);
        if (entry.place === 'main') this.main = made;
    }
  }

  #keepDeleted({ place, commit }: ModelRevision): void {
    const tree = this.records.treeAt(commit);
    if (place === 'tag' && tree !== undefined && this.main !== undefined && this.records.treeAt(this.main) === tree)
      this.deletedContent = tree;
  }

  /** Every ref of the package and the main branch that there should be. */
  refs(): Map<string, string> {
    const refs = new Map<string, string>();
    if (this.main !== undefined) refs.set('refs/heads/main', this.main);
    for (const [workspace, entry] of this.entries) {
      if (entry.place === 'draft') refs.set(`refs/heads/drafts/dir/${PACKAGE}/${workspace}`, entry.commit);
      if (entry.place === 'proposed') refs.set(`refs/heads/proposed/dir/${PACKAGE}/${workspace}`, entry.commit);
      if (entry.place === 'tag') refs.set(`refs/tags/dir/${PACKAGE}/${entry.version}`, entry.commit);
    }
    for (const [version, commit] of this.marks)
      refs.set(`refs/heads/deletionProposed/dir/${PACKAGE}/${version}`, commit);
    return refs;
  }

  #addClosed(entry: ModelRevision, kept: ModelRecord, asked: ModelRequest, reasons: Set<string>): void {
    const now = this.judgedAt(entry, kept, asked);
    const closed = this.gates(entry, kept, asked.action).filter((type) => !this.isOpen(entry, kept, type, now));
    if (closed.length > 0 && asked.action === 'approve' && asked.breakGlass) {
      const may = this.policy.breakGlass.some((name) => name === asked.actor || asked.groups.includes(name.slice(6)));
      const isDecision = asked.byMerge && asked.merged === undefined;
      if (!may || isDecision || (asked.reason ?? '').trim() === '') reasons.add('NotAllowed');
      return;
    }
    if (asked.merged?.recordBypass === true) return;
    for (const type of closed) {
      const given = kept.given.get(type);
      if (entry.conditions.get(type)?.status !== 'True' || given?.status !== 'True') reasons.add('GateUnmet');
      else if (!this.#mayGive(given, type)) reasons.add('NotAllowed');
      else reasons.add('VerdictStale');
    }
  }

  #isOther({ proposer, contributors }: ModelRecord, { actor, isController }: ModelRequest): boolean {
    return !isController && actor !== proposer && !contributors.has(actor);
  }

  /** A verdict on an object is stale without it; one on all content stays one on all content. */
  #sees(entry: ModelRevision, { saw }: ModelVerdict): boolean {
    return saw === (saw.startsWith('object') ? `object ${entry.object}` : inputsSeen('', entry));
  }

  #isOver({ at }: ModelVerdict, type: string, now: number): boolean {
    return this.policy.validFor.some((rule) => rule.conditionType === type && now - at >= rule.milliseconds);
  }

  #mayGive(given: ModelVerdict, type: string): boolean {
    const fits = (pattern: string) => pattern === type || pattern === '*';
    if (given.pushed && this.policy.pushDenied.some(fits)) return false;
    const rules = this.policy.givers.filter((rule) => fits(rule.conditionType));
    return rules.every(
      (rule) => rule.actors.includes(given.by) || given.groups.some((group) => rule.actors.includes(`group:${group}`)),
    );
  }
}
