import { DEFAULT_POLICY, type EffectivePolicy } from '../../model/policy/policy.ts';
import { ACTIONS, type Action, type Decision } from '../../model/revision/revision-state.ts';
import { Draws } from './draws.ts';
import { ForeignMoves } from './foreign-moves.ts';
import { Model } from './model.ts';
import { emptyKept, ModelRecords } from './model-records.ts';
import type { ModelRecord, ModelRequest, ModelRevision } from './model-state.ts';
import { ACTORS, type PackageData, TYPES, treeOf } from './package-data.ts';
import { type ListedRevision, MAIN, recordRefOf } from './places.ts';
import { World } from './world.ts';
import { faceOf } from './world-request.ts';

/** Time between two steps. */
const STEP_MS = 600_000;

/** One step of a sequence, for the checks of a test. */
export interface Step {
  /** Set for requests. */
  readonly request?: {
    readonly target: ListedRevision;
    readonly action: Action;
    readonly decision: Decision;
    /** Reasons that the model has against it. */
    readonly against: ReadonlySet<string>;
    /** True if every gate was open in the model before the step. */
    readonly open: boolean;
    readonly mayBreakGlass: boolean;
    /** Approvals with this one, as the model counts them. */
    readonly approvals: { readonly given: number; readonly needed: number };
    readonly nextNumber: number;
    /** It names a commit of the Git host. */
    readonly isMerged: boolean;
    /** What the model notes as a publication that does not count. */
    readonly isBypass: boolean;
    /** It shares its commit with an approval of another package. */
    readonly isShared: boolean;
    /** The Git host is to publish it by a merge. */
    readonly isDecision: boolean;
  };
  /** Tags, and the main branch, that another actor changed. */
  readonly foreign?: readonly string[];
  /** A tag that another actor put where the server once had it. */
  readonly replayed?: string;
  /** Kind of the attack, for the coverage of a test. */
  readonly attack?: string;
}

function policyFrom(draws: Draws): EffectivePolicy {
  const enforcement = (['enforce', 'enforce', 'enforce', 'warn', 'off'] as const)[draws.below(5)] ?? 'enforce';
  const rule = (conditionType: string, ...actors: string[]) => ({ conditionType, actors, policy: 'who' });
  const gate = (conditionType: string, approveOnly: boolean, policy = 'what') => ({
    conditionType,
    approveOnly,
    policy,
  });
  return {
    ...DEFAULT_POLICY,
    enforcement,
    requiredGates:
      [
        [],
        [],
        [gate('Signed', false), gate('Signed', true, 'b')],
        [gate('Signed', true)],
        [gate('Checked', false)],
        [gate('Checked', true), gate('Signed', true), gate('Signed', false, 'b')],
      ][draws.below(6)] ?? [],
    givers:
      [
        [],
        [],
        [rule('Checked', 'ann', 'bob')],
        [rule('*', 'group:net', 'controller:ipam')],
        [rule('Signed', 'ann'), rule('*', 'ann', 'push')],
      ][draws.below(5)] ?? [],
    pushDenied: [[], [], ['*'], ['Signed']][draws.below(4)] ?? [],
    forbidSelfApproval: draws.below(3) === 0,
    breakGlass: [[], ['ann', 'bob'], ['bob'], ['group:net']][draws.below(4)] ?? [],
    validFor: draws.below(3) === 0 ? [{ conditionType: 'Checked', milliseconds: 5 * STEP_MS }] : [],
  };
}

/** Takes the world and the model through the same steps, one integer each. */
export class Driver {
  readonly world: World;
  readonly model: Model;
  /** If false, pushes change only drafts. */
  readonly #foreign: boolean;
  readonly #moves: ForeignMoves;

  constructor(seed: number, foreign: boolean) {
    const draws = new Draws(seed);
    const policy = policyFrom(draws);
    this.world = new World(policy);
    const { store, records } = this.world;
    this.model = new Model(policy, store.last, new ModelRecords(store.commits, records.key));
    this.#moves = new ForeignMoves(this.world, this.model);
    this.#foreign = foreign;
    this.#look();
    this.#create('w0', draws);
    for (const type of TYPES)
      if (draws.below(4) > 0) this.#give('w0', type, 'True', 'ok', ACTORS[draws.below(3)] ?? ACTORS[0]);
  }

  step(seed: number): Step {
    this.world.pass(STEP_MS);
    this.#look();
    const step = this.#step(new Draws(seed));
    // Sometimes several changes happen before the server reads again.
    if (seed % 3 > 0) this.#look();
    return step;
  }

  #look(): void {
    this.model.now = this.world.now;
    this.world.look();
    this.model.records.look(this.model.tags(), this.model.main);
  }

  #step(draws: Draws): Step {
    const kind = draws.below(this.#foreign ? 55 : 32);
    const targets = this.world.list();
    const target = draws.of(targets);
    const open = targets.filter(({ lifecycle }) => lifecycle === 'Draft' || lifecycle === 'Proposed');
    const edited = draws.of(open);
    if (kind < 22) return target === undefined ? {} : this.#request(target, draws);
    if (kind === 29) {
      this.#create(`w${draws.below(4)}`, draws);
      return {};
    }
    if (kind === 30) {
      this.world.policy = policyFrom(draws);
      this.model.policy = this.world.policy;
      return {};
    }
    if (kind === 31) {
      this.model.nested = draws.below(3) === 0;
      this.world.nestedWith = this.model.nested ? 'net' : undefined;
      this.model.inUse = draws.below(3) === 0;
      this.world.dependents = this.model.inUse ? ['r.other.w1'] : [];
      return {};
    }
    if (kind > 51) {
      const proposed = targets.find(({ lifecycle }) => lifecycle === 'Proposed');
      return proposed === undefined ? {} : this.#moves.merge(proposed, draws);
    }
    if (kind > 31) return this.#moves.make(draws, targets, edited);
    if (edited === undefined) return {};
    const { workspace } = edited;
    if (kind < 25) {
      const status = draws.below(4) > 0 ? 'True' : 'False';
      this.#give(workspace, draws.of(TYPES) ?? '', status, `${draws.below(2)}`, draws.of(ACTORS) ?? ACTORS[0]);
    } else if (kind === 25) this.#withdraw(workspace, draws.of(TYPES) ?? '');
    else if (kind === 26) this.#keep(edited);
    else if (kind === 28 && edited.lifecycle === 'Draft' && draws.below(2) === 0) this.#rebase(edited);
    else if (kind === 27 && (this.#foreign || edited.lifecycle === 'Draft')) this.#moves.pushChange(edited, draws);
    else this.#edit(edited, draws);
    return {};
  }

  #request(target: ListedRevision, draws: Draws): Step {
    const usual = {
      Draft: 'propose',
      Proposed: 'approve',
      Published: 'propose-deletion',
      DeletionProposed: 'delete',
    } as const;
    const action = draws.below(5) < 4 ? usual[target.lifecycle] : (ACTIONS[draws.below(ACTIONS.length)] ?? 'propose');
    const drawn = draws.of(ACTORS) ?? ACTORS[0];
    const expected = draws.below(3) === 0 ? undefined : draws.below(6) > 0 ? target.commit : 'c0';
    const reason = [undefined, 'because', 'because', ' '][draws.below(4)];
    const breakGlass = draws.below(3) === 0;
    const { workspace } = target;
    const made = action === 'approve' && draws.below(4) > 0 ? this.#moves.merges.get(workspace) : undefined;
    const objection = draws.below(4) === 0 ? { objection: 'carl' } : {};
    const merged = made === undefined ? undefined : { commit: made, recordBypass: draws.below(2) === 0, ...objection };
    const byMerge = draws.below(2) === 0;
    const entry = this.#entry(workspace);
    const kept = this.model.kept(workspace);
    // Who decided on a merge mostly publishes it.
    const decider = ACTORS.find(({ name }) => kept.approvals.get(name)?.decided !== undefined);
    const actor = merged !== undefined && decider !== undefined && draws.below(4) > 0 ? decider : drawn;
    const isShared = action === 'approve' && draws.below(2) === 0;
    const asked: ModelRequest = {
      ...{ action, actor: actor.name, groups: actor.groups, isController: faceOf(actor) === 'controller' },
      ...{ expected, reason, breakGlass, merged, byMerge },
    };
    const against = this.model.against(entry, kept, asked);
    const open = this.model.areOpen(entry, kept, asked);
    const approvals = this.model.approvals(entry, kept, asked);
    const mayBreakGlass = breakGlass && !open;
    const nextNumber = this.model.nextNumber();
    const isBypass = this.model.isBypass(entry, kept, asked);
    const asking = { action, actor, expectedCommit: expected, reason, breakGlass, merged, byMerge, isShared };
    const decision = this.world.request(target, asking);
    if (against.size === 0) this.#apply(workspace, entry, kept, asked, approvals, isBypass);
    const isMerged = merged !== undefined;
    return {
      request: {
        ...{ target, action, decision, against, open, mayBreakGlass, approvals, nextNumber },
        ...{ isMerged, isBypass, isShared, isDecision: byMerge && !isMerged },
      },
    };
  }

  /** Does in the model what it allowed. */
  #apply(
    workspace: string,
    entry: ModelRevision,
    kept: ModelRecord,
    asked: ModelRequest,
    approvals: { readonly given: number; readonly needed: number },
    isBypass: boolean,
  ): void {
    const { records } = this.model;
    const { action, actor } = asked;
    if (action === 'approve') {
      const content = `all ${entry.content} ${entry.object}`;
      for (const [person, approved] of kept.approvals) if (approved.content !== content) kept.approvals.delete(person);
      const isEnough = approvals.given >= approvals.needed;
      const data = asked.byMerge && isEnough ? this.world.data(entry.commit) : undefined;
      const decided = data === undefined ? {} : { decided: { tree: treeOf(data), at: this.model.now } };
      kept.approvals.set(actor, { content, ...decided });
      if (asked.merged === undefined && (asked.byMerge || !isEnough)) {
        this.#wrote(workspace, kept);
        return;
      }
    }
    this.model.apply(workspace, entry, kept, asked, this.world.refs.get(MAIN) ?? '');
    if (action === 'approve') {
      const { version, commit } = entry;
      records.published(workspace, { version, commit, counts: !isBypass }, kept.given);
    } else if (action === 'delete') records.deleted(workspace);
    else this.#wrote(workspace, kept);
    this.model.records.look(this.model.tags(), this.model.main);
  }

  #wrote(workspace: string, kept: ModelRecord): void {
    const oid = this.world.refs.get(recordRefOf(workspace));
    if (oid === undefined) throw new Error(`there is no record of ${workspace}`);
    const entry = this.#entry(workspace);
    this.model.records.wrote(workspace, oid, { ...kept, commit: entry.commit });
  }

  #create(workspace: string, draws: Draws): void {
    if (this.model.entries.has(workspace)) return;
    const source = this.world.list().filter(({ tag, commit, revision }) => {
      return revision > 0 && tag !== undefined && this.world.store.isInBand(tag, commit);
    })[draws.below(3)];
    const data = source === undefined ? this.#moves.fresh(draws) : this.world.data(source.commit);
    const actor = draws.of(ACTORS) ?? ACTORS[0];
    if (data === undefined) return;
    const given = source === undefined ? undefined : this.model.kept(source.workspace).given;
    this.world.create(workspace, data, source, actor);
    const commit = this.world.store.last;
    this.model.entries.set(workspace, this.#moves.draft(data, commit));
    const tree = source === undefined ? undefined : this.model.records.treeAt(source.commit);
    const base = this.model.main === undefined ? undefined : { commit: this.model.main, tree };
    const kept = emptyKept(commit, given, base);
    if (source === undefined && faceOf(actor) !== 'controller') kept.contributors.add(actor.name);
    this.#wrote(workspace, kept);
  }

  #give(workspace: string, type: string, status: 'True' | 'False', text: string, actor: (typeof ACTORS)[number]): void {
    const entry = this.#entry(workspace);
    const kept = this.model.kept(workspace);
    this.world.give(this.#listed(workspace), { type, status, message: text }, actor);
    const { name: by, groups } = actor;
    this.model.give(entry, kept, { type, status, text, by, groups, pushed: false });
    entry.commit = this.world.store.last;
    this.#wrote(workspace, kept);
  }

  #withdraw(workspace: string, type: string): void {
    const entry = this.#entry(workspace);
    const kept = this.model.kept(workspace);
    this.world.withdraw(this.#listed(workspace), type);
    entry.conditions.delete(type);
    kept.given.delete(type);
    entry.commit = this.world.store.last;
    this.#wrote(workspace, kept);
  }

  #keep(revision: ListedRevision): void {
    const kept = this.model.kept(revision.workspace);
    this.world.keep(revision);
    this.#wrote(revision.workspace, kept);
  }

  /** Keeps the draft as it is, with the present main branch as its base. */
  #rebase(revision: ListedRevision): void {
    const { main, records } = this.model;
    if (main === undefined) return;
    const { workspace } = revision;
    const entry = this.#entry(workspace);
    const kept = this.model.kept(workspace);
    this.world.rebase(revision, main);
    entry.commit = this.world.store.last;
    this.#wrote(workspace, { ...kept, base: { commit: main, tree: records.treeAt(main) } });
  }

  /** Other content, object, gates or a Kptfile that cannot be read. In a proposed revision gates can be added. */
  #edit(revision: ListedRevision, draws: Draws): void {
    const { workspace, lifecycle } = revision;
    const entry = this.#entry(workspace);
    const kept = this.model.kept(workspace);
    const actor = draws.of(ACTORS) ?? ACTORS[0];
    const { content, object } = entry;
    if (lifecycle === 'Draft') this.#moves.alter(entry, draws);
    else entry.gates = TYPES.filter((type) => entry.gates.includes(type) || draws.below(2) === 0);
    this.world.edit(revision, actor, (data: PackageData) => this.#moves.dataOf(entry, data));
    const isOther = content !== entry.content || object !== entry.object;
    if (isOther && faceOf(actor) !== 'controller') kept.contributors.add(actor.name);
    entry.commit = this.world.store.last;
    this.#wrote(workspace, kept);
  }

  #entry(workspace: string): ModelRevision {
    const entry = this.model.entries.get(workspace);
    if (entry === undefined) throw new Error(`the model does not know ${workspace}`);
    return entry;
  }

  #listed(workspace: string): ListedRevision {
    const revision = this.world.list().find((candidate) => candidate.workspace === workspace);
    if (revision === undefined) throw new Error(`the world does not know ${workspace}`);
    return revision;
  }
}
