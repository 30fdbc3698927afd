import type { Condition } from '../../../../kptfile-schema/index.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../policy.ts';
import { ACTIONS, type Action, type Decision } from '../types.ts';
import { type Entry, Model } from './model.ts';
import { OBJECT_TYPE, PACKAGE, type PackageData } from './package-data.ts';
import { LAYOUT, type Listed, World } from './world.ts';

const TYPES = ['Checked', OBJECT_TYPE, 'Signed'] as const;
const ACTORS = [
  { name: 'ann', groups: ['net'] },
  { name: 'bob', groups: [] },
  { name: 'controller:ipam', groups: ['controllers'] },
] as const;
const MAIN = `refs/heads/${LAYOUT.branch}`;
const TAGS = `refs/tags/${LAYOUT.directory}/${PACKAGE}/`;
const PUSHER = { name: 'push', groups: [], pushed: true };

/** What one step of a sequence was, for the checks of a test. */
export interface Step {
  /** Set for requests. */
  readonly request?: {
    readonly target: Listed;
    readonly action: Action;
    readonly decision: Decision;
    /** Reasons that the model has against it. */
    readonly against: ReadonlySet<string>;
    /** Whether the model had every gate open before it. */
    readonly open: boolean;
    readonly nextNumber: number;
  };
  /** What somebody else did to a tag or the main branch. */
  readonly foreign?: string;
}

/** Small numbers out of one large one, so that a test case is a plain list of integers. */
class Draws {
  #rest: number;

  constructor(seed: number) {
    this.#rest = seed;
  }

  below(limit: number): number {
    const drawn = this.#rest % limit;
    this.#rest = Math.floor(this.#rest / limit);
    return drawn;
  }

  of<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(Math.max(1, items.length))];
  }
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
    forbidSelfApproval: draws.below(4) === 0,
  };
}

/** Takes the world and the model through the same steps, one integer each. */
export class Driver {
  readonly world: World;
  readonly model: Model;
  /** Without: others push to drafts, and to nothing else. */
  readonly #foreign: boolean;
  #content = 1;

  constructor(seed: number, foreign: boolean) {
    const policy = policyFrom(new Draws(seed));
    this.world = new World(policy);
    this.model = new Model(policy, this.world.last);
    this.#foreign = foreign;
    const draws = new Draws(Math.floor(seed / 500));
    this.#create('w0', draws);
    for (const type of TYPES)
      if (draws.below(4) > 0) this.#give('w0', type, 'True', 'ok', ACTORS[draws.below(3)] ?? ACTORS[0]);
  }

  step(seed: number): Step {
    const draws = new Draws(seed);
    const kind = draws.below(this.#foreign ? 32 : 22);
    const targets = this.world.list();
    const target = draws.of(targets);
    const open = targets.filter(({ lifecycle }) => lifecycle === 'Draft' || lifecycle === 'Proposed');
    const edited = draws.of(open);
    if (kind < 11) return target === undefined ? {} : this.#request(target, draws);
    if (kind < 14)
      return this.#on(edited, ({ workspace }) =>
        this.#give(
          workspace,
          draws.of(TYPES) ?? '',
          draws.below(4) > 0 ? 'True' : 'False',
          `${draws.below(2)}`,
          draws.of(ACTORS) ?? ACTORS[0],
        ),
      );
    if (kind === 14) return this.#on(edited, ({ workspace }) => this.#withdraw(workspace, draws.of(TYPES) ?? ''));
    if (kind < 17) return this.#on(edited, (revision) => this.#change(revision, draws, false));
    if (kind < 19)
      return this.#on(edited, (revision) =>
        this.#change(revision, draws, this.#foreign || revision.lifecycle === 'Draft'),
      );
    if (kind === 19) {
      this.#create(`w${draws.below(4)}`, draws);
      return {};
    }
    if (kind === 20) {
      this.world.policy = policyFrom(draws);
      this.model.policy = this.world.policy;
      return {};
    }
    if (kind === 21) {
      this.model.nested = draws.below(3) === 0;
      this.world.nestedWith = this.model.nested ? 'net' : undefined;
      this.model.inUse = draws.below(3) === 0;
      this.world.dependents = this.model.inUse ? ['r.other.w1'] : [];
      return {};
    }
    return this.#others(kind, targets, edited, draws);
  }

  #others(kind: number, targets: readonly Listed[], edited: Listed | undefined, draws: Draws): Step {
    if (kind < 25) return this.#on(edited, (revision) => this.#pushConditions(revision, draws));
    if (kind === 25) return this.#on(edited, (revision) => this.#pushMove(revision));
    if (kind === 26) return this.#on(edited, (revision) => this.#pushDelete(revision));
    if (kind === 27) return this.#pushDraft(`w${draws.below(4)}`, draws);
    if (kind === 28) return this.#foreignTag(targets, draws);
    if (kind === 29) return this.#foreignUntag(targets, draws);
    if (kind === 30) return this.#foreignMain();
    return draws.below(3) === 0 ? this.#foreignMainGone() : this.#foreignRetag(targets, draws);
  }

  #request(target: Listed, draws: Draws): Step {
    const usual = {
      Draft: 'propose',
      Proposed: 'approve',
      Published: 'propose-deletion',
      DeletionProposed: 'delete',
    } as const;
    const action = draws.below(5) < 3 ? usual[target.lifecycle] : (ACTIONS[draws.below(ACTIONS.length)] ?? 'propose');
    const actor = draws.of(ACTORS) ?? ACTORS[0];
    const expected = [
      undefined,
      undefined,
      undefined,
      target.commit,
      target.commit,
      target.commit,
      target.commit,
      'c0',
    ][draws.below(8)];
    const entry = this.#entry(target.workspace);
    const asked = { action, actor: actor.name, expected };
    const against = this.model.against(entry, asked);
    const open = this.model.gates(entry, 'approve').every((type) => this.model.isOpen(entry, type));
    const nextNumber = this.model.nextNumber();
    const decision = this.world.request(target, action, actor, expected);
    const made = this.world.refs.get(MAIN) ?? '';
    if (against.size === 0) this.model.apply(target.workspace, entry, asked, made);
    return { request: { target, action, decision, against, open, nextNumber } };
  }

  #create(workspace: string, draws: Draws): void {
    if (this.model.entries.has(workspace)) return;
    const source = this.world
      .list()
      .filter((revision) => revision.lifecycle === 'Published' && revision.workspace.startsWith('w'))[draws.below(3)];
    const data = source === undefined ? this.#fresh(draws) : this.world.data(source.commit);
    if (data === undefined) return;
    this.world.create(workspace, data, source);
    const copied = source === undefined ? undefined : this.#entry(source.workspace);
    this.model.entries.set(workspace, this.#draft(data, this.#tip(workspace), copied?.given ?? new Map()));
  }

  #fresh(draws: Draws): PackageData {
    this.#content += 1;
    const gates = TYPES.filter(() => draws.below(2) === 0);
    return {
      content: this.#content,
      object: draws.below(2) === 0 ? undefined : this.#content,
      gates,
      conditions: new Map(),
      problem: undefined,
    };
  }

  #draft(data: PackageData, commit: string, given: Entry['given']): Entry {
    return {
      place: 'draft',
      version: '',
      number: 0,
      commit,
      content: data.content,
      object: data.object,
      gates: [...data.gates],
      conditions: new Map(
        [...data.conditions].map(([type, { status, message }]) => [type, { status, text: message ?? '' }]),
      ),
      given: new Map(given),
      broken: data.problem !== undefined,
      proposer: undefined,
    };
  }

  #give(workspace: string, type: string, status: 'True' | 'False', text: string, actor: (typeof ACTORS)[number]): void {
    const revision = this.#listed(workspace);
    const entry = this.#entry(workspace);
    this.world.give(revision, { type, status, message: text }, actor);
    this.model.give(entry, type, status, text, { ...actor, pushed: false });
    entry.commit = this.#tip(workspace);
  }

  #withdraw(workspace: string, type: string): void {
    const entry = this.#entry(workspace);
    this.world.withdraw(this.#listed(workspace), type);
    entry.conditions.delete(type);
    entry.given.delete(type);
    entry.commit = this.#tip(workspace);
  }

  /** Other content, object, gates or a Kptfile that cannot be read, by Sluice or by a push. */
  #change(revision: Listed, draws: Draws, pushed: boolean): void {
    const entry = this.#entry(revision.workspace);
    this.#content += 1;
    const what = draws.below(8);
    if (what < 3) entry.content = this.#content;
    else if (what < 5) entry.object = draws.below(4) === 0 ? undefined : this.#content;
    else if (what < 7) entry.gates = TYPES.filter(() => draws.below(2) === 0);
    else entry.broken = !entry.broken;
    const { content, object, gates, broken } = entry;
    const change = (data: PackageData) => ({
      ...data,
      content,
      object,
      gates,
      problem: broken ? 'no YAML' : undefined,
    });
    if (pushed) this.world.push(revision, change);
    else this.world.edit(revision, change);
    entry.commit = this.#tip(revision.workspace);
  }

  /** A push that sets one condition, maybe to what it is already, and maybe changes the content too. */
  #pushConditions(revision: Listed, draws: Draws): void {
    const entry = this.#entry(revision.workspace);
    const condition: Condition = {
      type: draws.of(TYPES) ?? '',
      status: draws.below(4) > 0 ? 'True' : 'False',
      message: `${draws.below(2)}`,
    };
    if (draws.below(2) === 0) {
      this.#content += 1;
      entry.content = this.#content;
    }
    const { content } = entry;
    this.world.push(revision, (data) => ({
      ...data,
      content,
      conditions: new Map(data.conditions).set(condition.type, condition),
    }));
    const before = entry.conditions.get(condition.type);
    if (before?.status !== condition.status || before.text !== condition.message) {
      this.model.give(entry, condition.type, condition.status, condition.message ?? '', PUSHER);
    }
    entry.commit = this.#tip(revision.workspace);
  }

  #pushMove(revision: Listed): void {
    const entry = this.#entry(revision.workspace);
    this.world.pushMove(revision);
    entry.place = entry.place === 'draft' ? 'proposed' : 'draft';
    entry.proposer = undefined;
  }

  #pushDelete(revision: Listed): void {
    const branch = revision.lifecycle === 'Draft' ? 'drafts' : 'proposed';
    this.world.pushDelete(`refs/heads/${branch}/${LAYOUT.directory}/${PACKAGE}/${revision.workspace}`);
    this.model.entries.delete(revision.workspace);
  }

  #pushDraft(workspace: string, draws: Draws): Step {
    if (this.model.entries.has(workspace)) return {};
    const data = {
      ...this.#fresh(draws),
      conditions: new Map<string, Condition>([['Checked', { type: 'Checked', status: 'True', message: 'ok' }]]),
    };
    this.world.pushDraft(workspace, data);
    const entry = this.#draft(data, this.#tip(workspace), new Map());
    this.model.entries.set(workspace, entry);
    this.model.give(entry, 'Checked', 'True', 'ok', PUSHER);
    return {};
  }

  #foreignTag(targets: readonly Listed[], draws: Draws): Step {
    const version = ['v2.0.0', 'v2.0.0', 'v3', 'v3', 'v9', 'v9', 'v9', 'v999999999'][draws.below(8)] ?? '';
    return targets.some(({ tag }) => tag === TAGS + version) ? {} : this.#pushTag(version, draws);
  }

  /** Moves a tag that somebody else made: for whoever looks afterwards, as if it was taken away and made again. */
  #foreignRetag(targets: readonly Listed[], draws: Draws): Step {
    const foreign = targets.filter(({ tag, workspace }) => tag === TAGS + workspace);
    const { foreign: tag } = this.#foreignUntag(foreign, draws);
    return tag === undefined ? {} : this.#pushTag(tag.slice(TAGS.length), draws);
  }

  #pushTag(version: string, draws: Draws): Step {
    const data = this.#fresh(draws);
    this.world.pushRef(TAGS + version, data);
    const number = version === 'v2.0.0' ? -1 : Number(version.slice(1));
    this.model.entries.set(version, {
      ...this.#draft(data, this.world.last, new Map()),
      place: 'tag',
      version,
      number,
    });
    return { foreign: TAGS + version };
  }

  #foreignUntag(targets: readonly Listed[], draws: Draws): Step {
    const target = draws.of(targets.filter(({ tag }) => tag !== undefined));
    if (target?.tag === undefined) return {};
    this.world.pushDelete(target.tag);
    this.model.entries.delete(target.workspace);
    return { foreign: target.tag };
  }

  #foreignMain(): Step {
    const head = this.model.main;
    this.world.pushRef(MAIN, head === undefined ? undefined : this.world.data(head));
    this.model.main = this.world.last;
    const placeholder = this.model.entries.get('main');
    if (placeholder !== undefined) placeholder.commit = this.world.last;
    return { foreign: MAIN };
  }

  #foreignMainGone(): Step {
    if (this.model.main === undefined) return {};
    this.world.pushDelete(MAIN);
    this.model.main = undefined;
    this.model.entries.delete('main');
    return { foreign: MAIN };
  }

  #on<Revision>(revision: Revision | undefined, act: (revision: Revision) => void): Step {
    if (revision !== undefined) act(revision);
    return {};
  }

  #entry(workspace: string): Entry {
    const entry = this.model.entries.get(workspace);
    if (entry === undefined) throw new Error(`the model does not know ${workspace}`);
    return entry;
  }

  #listed(workspace: string): Listed {
    const revision = this.world.list().find((candidate) => candidate.workspace === workspace);
    if (revision === undefined) throw new Error(`the world does not know ${workspace}`);
    return revision;
  }

  #tip(workspace: string): string {
    return this.#listed(workspace).commit;
  }
}
