import type { EffectivePolicy } from '../../policy.ts';
import { OBJECT_TYPE, PACKAGE } from './package-data.ts';

/*
 * The rules of the lifecycle as a second, plainer program, to hold the kernel against. Written from the rules in words:
 *
 * - Draft → Proposed → Published; back from Proposed by reject. A published revision is first proposed for deletion, which can
 *   be undone, then deleted. Drafts and proposed revisions can be deleted at once.
 * - Approval gives the next number, moves the main branch and puts a tag on the same commit; the branch is gone then.
 * - A gate is a condition type of the Kptfile or of a policy. It is open if the condition is True, and was given as True, by one
 *   whom every policy lets give it, for what the package holds now: the object that the type names, if there is one, else all.
 * - All gates are asked for at approval; at proposal those that a policy marks approve-only are not.
 * - Closed gates forbid the step only where the repository enforces them.
 * - What somebody judged and what is there must be the same commit.
 */
export interface Given {
  status: string;
  by: string;
  groups: readonly string[];
  pushed: boolean;
  /** What the package held where this condition looks. */
  saw: string;
}

export interface Entry {
  place: 'draft' | 'proposed' | 'tag' | 'main';
  version: string;
  number: number;
  commit: string;
  content: number;
  object: number | undefined;
  gates: string[];
  conditions: Map<string, { status: string; text: string }>;
  given: Map<string, Given>;
  broken: boolean;
  proposer: string | undefined;
}

export interface Asked {
  action: string;
  actor: string;
  expected: string | undefined;
}

export function copyOf(entry: Entry): Entry {
  return { ...entry, gates: [...entry.gates], conditions: new Map(entry.conditions), given: new Map(entry.given) };
}

export class Model {
  readonly entries = new Map<string, Entry>();
  /** Deletion marks by version, and what they point to. */
  readonly marks = new Map<string, string>();
  /** What the main branch points to; undefined if it does not exist. */
  main: string | undefined;
  policy: EffectivePolicy;
  nested = false;
  inUse = false;

  constructor(policy: EffectivePolicy, main: string) {
    this.policy = policy;
    this.main = main;
  }

  /** What a condition of this type looks at, as it is now. */
  look(entry: Entry, type: string): string {
    if (type === OBJECT_TYPE && entry.object !== undefined) return `object ${entry.object}`;
    return `all ${entry.content} ${entry.object}`;
  }

  give(
    entry: Entry,
    type: string,
    status: string,
    text: string,
    by: { name: string; groups: readonly string[]; pushed: boolean },
  ): void {
    entry.conditions.set(type, { status, text });
    entry.given.set(type, { status, by: by.name, groups: by.groups, pushed: by.pushed, saw: this.look(entry, type) });
  }

  isOpen(entry: Entry, type: string): boolean {
    const given = entry.given.get(type);
    if (entry.conditions.get(type)?.status !== 'True' || given?.status !== 'True') return false;
    return this.#mayGive(given, type) && this.#sees(entry, given);
  }

  /** The gates asked for at a step. */
  gates(entry: Entry, step: string): string[] {
    const types = new Set([...entry.gates, ...this.policy.requiredGates.map((gate) => gate.conditionType)]);
    if (step === 'approve') return [...types];
    return [...types].filter((type) => {
      const rules = this.policy.requiredGates.filter((gate) => gate.conditionType === type);
      return rules.length === 0 || rules.some((gate) => !gate.approveOnly);
    });
  }

  isMarked(entry: Entry): boolean {
    return (entry.place === 'tag' || entry.place === 'main') && this.marks.has(entry.version);
  }

  /** The codes of all reasons against a request; none means that it is allowed. */
  against(entry: Entry, asked: Asked): Set<string> {
    if (asked.expected !== undefined && asked.expected !== entry.commit) return new Set(['Conflict']);
    const published = entry.place === 'tag' || entry.place === 'main';
    const marked = this.isMarked(entry);
    const fits: Record<string, boolean> = {
      propose: entry.place === 'draft',
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
      if (this.main === undefined || this.nextNumber() > 999_999_999) reasons.add('Conflict');
      if (this.policy.forbidSelfApproval && (entry.proposer === undefined || entry.proposer === asked.actor))
        reasons.add('NotAllowed');
    }
    // At proposal gates are not looked at in a package that could not be proposed anyway; at approval all reasons are told.
    const looks = asked.action === 'approve' || reasons.size === 0;
    if (this.policy.enforcement === 'enforce' && looks) this.#addClosed(entry, asked.action, reasons);
    return reasons;
  }

  nextNumber(): number {
    let next = 1;
    for (const entry of this.entries.values())
      if (entry.place === 'tag' && entry.number >= next) next = entry.number + 1;
    return next;
  }

  /** Does what was allowed; `made` is the commit that an approval or a removal made. */
  apply(workspace: string, entry: Entry, asked: Asked, made: string): void {
    switch (asked.action) {
      case 'propose':
        entry.place = 'proposed';
        entry.proposer = asked.actor;
        return;
      case 'reject':
        if (entry.place === 'proposed') {
          entry.place = 'draft';
          entry.proposer = undefined;
        } else this.marks.delete(entry.version);
        return;
      case 'approve': {
        const number = this.nextNumber();
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
        this.entries.delete(workspace);
        if (this.isMarked(entry)) this.marks.delete(entry.version);
        if (entry.place === 'main') this.main = made;
    }
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

  #addClosed(entry: Entry, step: string, reasons: Set<string>): void {
    for (const type of this.gates(entry, step)) {
      if (this.isOpen(entry, type)) continue;
      const given = entry.given.get(type);
      if (entry.conditions.get(type)?.status !== 'True' || given?.status !== 'True') reasons.add('GateUnmet');
      else if (!this.#mayGive(given, type)) reasons.add('NotAllowed');
      else reasons.add('VerdictStale');
    }
  }

  /** A verdict on an object is stale without it; one on all content stays one on all content. */
  #sees(entry: Entry, given: Given): boolean {
    return (
      given.saw === (given.saw.startsWith('object') ? `object ${entry.object}` : `all ${entry.content} ${entry.object}`)
    );
  }

  #mayGive(given: Given, type: string): boolean {
    const fits = (pattern: string) => pattern === type || pattern === '*';
    if (given.pushed && this.policy.pushDenied.some(fits)) return false;
    const rules = this.policy.givers.filter((rule) => fits(rule.conditionType));
    return rules.every(
      (rule) => rule.actors.includes(given.by) || given.groups.some((group) => rule.actors.includes(`group:${group}`)),
    );
  }
}
