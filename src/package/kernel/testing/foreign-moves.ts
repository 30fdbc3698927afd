import type { Condition } from '../../../../kptfile-schema/index.ts';
import { draftRef, proposedRef, tagRef } from '../../model/identity/layout.ts';
import type { Draws } from './draws.ts';
import { Forger } from './forger.ts';
import type { Model } from './model.ts';
import type { ModelRevision } from './model-state.ts';
import { PACKAGE, type PackageData, TYPES } from './package-data.ts';
import { LAYOUT, type ListedRevision, MAIN, recordRefOf, revisionKeyOf } from './places.ts';
import type { World } from './world.ts';

/** The change of another actor; see Step. */
export interface ForeignMove {
  readonly foreign?: readonly string[];
  readonly replayed?: string;
  readonly attack?: string;
}

const NOTHING: ForeignMove = {};

/** All changes of refs that a user who may push can make, in the world and in the model. */
export class ForeignMoves {
  readonly #world: World;
  readonly #model: Model;
  readonly #forger: Forger;
  /** Commits that a Git host made of proposals, the last one of each workspace. */
  readonly merges = new Map<string, string>();
  /** Tags that the server published. */
  readonly #published = new Map<string, Set<string>>();
  #content = 1;

  constructor(world: World, model: Model) {
    this.#world = world;
    this.#model = model;
    this.#forger = new Forger(world);
  }

  make(draws: Draws, targets: readonly ListedRevision[], edited: ListedRevision | undefined): ForeignMove {
    const kind = draws.below(22);
    for (const { tag, commit } of targets) this.#note(tag, commit);
    if (kind < 2) return this.#on(edited, (revision) => this.#pushConditions(revision, draws));
    if (kind === 2) return this.#on(edited, (revision) => this.#pushMove(revision));
    if (kind === 3) return this.#on(edited, (revision) => this.#pushDelete(revision, draws));
    if (kind === 4) return this.#pushDraft(`w${draws.below(4)}`, draws);
    if (kind < 7) return this.#tag(draws);
    if (kind === 7) return this.#untag(targets, draws);
    if (kind === 8) return this.#moveMain(draws);
    if (kind === 9) return draws.below(3) === 0 ? this.#removeMain() : this.#moveTag(targets, draws);
    if (kind < 15) return this.#on(edited, ({ workspace }) => this.#tamper(workspace, draws));
    if (kind === 15) return this.#replayTag(draws);
    if (kind < 18) {
      const proposed = targets.find(({ lifecycle }) => lifecycle === 'Proposed');
      return this.#on(proposed, (revision) => this.#subvert(revision, draws));
    }
    if (kind === 18) return this.#lose(draws);
    if (kind === 19) return this.#rotate(draws);
    if (kind === 20) return this.#on(edited, (revision) => this.#pushMerge(revision, draws));
    return this.#editMain(targets, draws);
  }

  fresh(draws: Draws): PackageData {
    this.#content += 1;
    const gates = TYPES.filter(() => draws.below(3) === 0);
    const object = draws.below(2) === 0 ? undefined : this.#content;
    return { content: this.#content, object, gates, conditions: new Map(), problem: undefined };
  }

  /** The entry of a draft. */
  draft(data: PackageData, commit: string): ModelRevision {
    const { content, object, gates, conditions, problem } = data;
    const output = [...conditions].map(
      ([type, { status, message }]) => [type, { status, text: message ?? '' }] as const,
    );
    return {
      ...{ place: 'draft', version: '', number: 0, commit, content, object },
      ...{ gates: [...gates], conditions: new Map(output), broken: problem !== undefined },
    };
  }

  /** Changes content, object or gates, or breaks the Kptfile. */
  alter(entry: ModelRevision, draws: Draws): void {
    this.#content += 1;
    const what = draws.below(8);
    if (what < 3) entry.content = this.#content;
    else if (what < 5) entry.object = draws.below(4) === 0 ? undefined : this.#content;
    else if (what < 7) entry.gates = TYPES.filter(() => draws.below(2) === 0);
    else entry.broken = !entry.broken;
  }

  dataOf({ content, object, gates, broken }: ModelRevision, data: PackageData): PackageData {
    return { ...data, content, object, gates: [...gates], problem: broken ? 'no YAML' : undefined };
  }

  pushChange(revision: ListedRevision, draws: Draws): void {
    const entry = this.#entry(revision.workspace);
    this.alter(entry, draws);
    // Some claim that Sluice made the commit.
    this.#push(revision, (data) => this.dataOf(entry, data), draws.below(4) === 0 ? 'edit' : undefined);
  }

  #push(revision: ListedRevision, change: (data: PackageData) => PackageData, action?: string): void {
    this.#world.push(revision, change, action);
    this.#entry(revision.workspace).commit = this.#world.store.last;
  }

  /** A push that sets one condition, maybe to what it is already, and maybe changes the content too. */
  #pushConditions(revision: ListedRevision, draws: Draws): ForeignMove {
    const entry = this.#entry(revision.workspace);
    const type = draws.of(TYPES) ?? '';
    const status = draws.below(4) > 0 ? 'True' : 'False';
    const text = `${draws.below(2)}`;
    const condition: Condition = { type, status, message: text };
    if (draws.below(2) === 0) {
      this.#content += 1;
      entry.content = this.#content;
    }
    entry.conditions.set(type, { status, text });
    const conditionsOf = (data: PackageData) => new Map(data.conditions).set(type, condition);
    this.#push(revision, (data) => ({ ...this.dataOf(entry, data), conditions: conditionsOf(data) }));
    return NOTHING;
  }

  /** Renames a draft branch to a proposed one, or back. */
  #pushMove({ workspace, lifecycle, commit }: ListedRevision): ForeignMove {
    const [draft, proposed] = [branchOf('Draft', workspace), branchOf('Proposed', workspace)];
    this.#set(lifecycle === 'Draft' ? draft : proposed, undefined);
    this.#set(lifecycle === 'Draft' ? proposed : draft, commit);
    const entry = this.#entry(workspace);
    entry.place = entry.place === 'draft' ? 'proposed' : 'draft';
    return NOTHING;
  }

  #pushDelete({ workspace, lifecycle }: ListedRevision, draws: Draws): ForeignMove {
    this.#set(branchOf(lifecycle, workspace), undefined);
    this.#model.entries.delete(workspace);
    if (draws.below(2) === 0) this.#putRecord(workspace, undefined);
    return NOTHING;
  }

  #pushDraft(workspace: string, draws: Draws): ForeignMove {
    if (this.#model.entries.has(workspace)) return NOTHING;
    const given: Condition = { type: 'Checked', status: 'True', message: 'ok' };
    const data = { ...this.fresh(draws), conditions: new Map([['Checked', given]]) };
    const { store, at } = this.#world;
    const action = draws.below(4) === 0 ? 'edit' : undefined;
    const commit = store.commit({ data, parents: store.mainParents(), action, time: at });
    this.#set(branchOf('Draft', workspace), commit);
    this.#model.entries.set(workspace, this.draft(data, commit));
    return NOTHING;
  }

  /** A tag on a commit without an approval, with any message. */
  #tag(draws: Draws): ForeignMove {
    const version = ['v2.0.0', 'v2', 'v3', 'v3', 'v4', 'v9', 'v9', 'v999999999'][draws.below(8)] ?? '';
    if (this.#world.refs.has(tagOf(version))) return NOTHING;
    const { commit, attack } = this.#forger.publication(version, this.fresh(draws), draws);
    // The main branch may have been brought there first.
    const isOnMain = draws.below(4) === 0 && this.#model.main !== undefined;
    const main = isOnMain ? this.#setMain(commit) : undefined;
    const tagged = this.#putTag(version, commit);
    return { foreign: [...(main?.foreign ?? []), ...(tagged?.foreign ?? [])], attack };
  }

  /** Undefined if the tag would hide another revision. */
  #putTag(version: string, commit: string): ForeignMove | undefined {
    const { store } = this.#world;
    const workspace = store.workspaceOf(commit, version);
    const data = this.#world.data(commit);
    if (this.#model.entries.has(workspace) || data === undefined) return undefined;
    this.#set(tagOf(version), commit);
    const number = version === 'v2.0.0' ? -1 : Number(version.slice(1));
    this.#model.entries.set(workspace, { ...this.draft(data, commit), place: 'tag', version, number });
    return { foreign: [tagOf(version)] };
  }

  #untag(targets: readonly ListedRevision[], draws: Draws): ForeignMove {
    const target = draws.of(targets.filter(({ tag }) => tag !== undefined));
    if (target?.tag === undefined) return NOTHING;
    this.#set(target.tag, undefined);
    this.#model.entries.delete(target.workspace);
    return { foreign: [target.tag] };
  }

  /** Sets a tag to a draft, to the target of another tag, or to a forged object. */
  #moveTag(targets: readonly ListedRevision[], draws: Draws): ForeignMove {
    const target = draws.of(targets.filter(({ tag }) => tag !== undefined));
    if (target?.tag === undefined) return NOTHING;
    const version = target.tag.slice(target.tag.lastIndexOf('/') + 1);
    const others = targets.filter(({ commit, revision }) => commit !== target.commit && revision !== -1);
    const forged = this.#forger.publication(version, this.fresh(draws), draws);
    const commit = draws.below(2) === 0 ? forged.commit : (draws.of(others)?.commit ?? forged.commit);
    this.#model.entries.delete(target.workspace);
    const moved = this.#putTag(version, commit);
    if (moved === undefined) this.#set(target.tag, undefined);
    return { foreign: [target.tag], attack: 'moved tag' };
  }

  /** Puts a tag where it was once, after it was deleted or moved. */
  #replayTag(draws: Draws): ForeignMove {
    const all = [...this.#published].flatMap(([tag, commits]) => [...commits].map((commit) => [tag, commit] as const));
    const [tag, commit] = draws.of(all.filter(([ref]) => !this.#world.refs.has(ref))) ?? [];
    if (tag === undefined || commit === undefined) return NOTHING;
    if (this.#putTag(tag.slice(tag.lastIndexOf('/') + 1), commit) === undefined) return NOTHING;
    return { replayed: tag, attack: 'replayed tag' };
  }

  /** The button of a Git host: what is proposed comes to the main branch, now and then with other changes. */
  merge({ workspace, commit: proposed }: ListedRevision, draws: Draws): ForeignMove {
    const { store, at } = this.#world;
    const data = draws.below(6) === 0 ? this.fresh(draws) : this.#world.data(proposed);
    const isSquashed = draws.below(2) === 0;
    const parents = [...store.mainParents(), ...(isSquashed ? [] : [proposed])];
    const commit = store.commit({ data, parents, action: undefined, time: at });
    this.merges.set(workspace, commit);
    // Onto another branch.
    if (draws.below(8) === 0 || this.#model.main === undefined) return NOTHING;
    return this.#setMain(commit);
  }

  /** Another user merges the main branch into a draft, and maybe takes over what is there. */
  #pushMerge(revision: ListedRevision, draws: Draws): ForeignMove {
    if (this.#model.main === undefined) return NOTHING;
    const entry = this.#entry(revision.workspace);
    if (draws.below(2) === 0) entry.content = this.#world.data(this.#model.main)?.content ?? entry.content;
    this.#world.pushMerge(revision, (data) => this.dataOf(entry, data));
    entry.commit = this.#world.store.last;
    return NOTHING;
  }

  /** A direct commit to the main branch changes the package, makes it that of another revision, or removes it. */
  #editMain(targets: readonly ListedRevision[], draws: Draws): ForeignMove {
    const { store, at } = this.#world;
    if (this.#model.main === undefined) return NOTHING;
    const other = draws.of(targets);
    const kind = draws.below(4);
    const data =
      kind === 0 ? undefined : kind === 1 || other === undefined ? this.fresh(draws) : this.#world.data(other.commit);
    return this.#setMain(store.commit({ data, parents: [this.#model.main], action: undefined, time: at }));
  }

  /** A commit on the main branch, which may claim to be an approval. */
  #moveMain(draws: Draws): ForeignMove {
    const head = this.#model.main;
    const data = head === undefined ? undefined : this.#world.data(head);
    const { store, at } = this.#world;
    const parents = head === undefined ? [] : [head];
    const action = draws.below(2) === 0 ? 'approve' : undefined;
    const commit = store.commit({ data, parents, action, time: at });
    this.#set(MAIN, commit);
    this.#model.main = commit;
    const placeholder = this.#model.entries.get('main');
    if (placeholder !== undefined) placeholder.commit = commit;
    return { foreign: [MAIN] };
  }

  #setMain(commit: string): ForeignMove {
    const data = this.#world.data(commit);
    this.#set(MAIN, commit);
    this.#model.main = commit;
    if (data === undefined) this.#model.entries.delete('main');
    else this.#model.entries.set('main', { ...this.draft(data, commit), place: 'main', version: 'main', number: -1 });
    return { foreign: [MAIN] };
  }

  #removeMain(): ForeignMove {
    if (this.#model.main === undefined) return NOTHING;
    this.#set(MAIN, undefined);
    this.#model.main = undefined;
    this.#model.entries.delete('main');
    return { foreign: [MAIN] };
  }

  /** Puts another record where the server wrote one. */
  #tamper(workspace: string, draws: Draws): ForeignMove {
    const { oid, attack } = this.#forger.record(workspace, this.#entry(workspace), draws);
    if (oid === undefined && attack !== 'removed record') return NOTHING;
    this.#putRecord(workspace, oid);
    return { attack };
  }

  /** Brings other content, gates and conditions into what was proposed, and hides what the server knows of the proposal. */
  #subvert(revision: ListedRevision, draws: Draws): ForeignMove {
    const { workspace } = revision;
    const entry = this.#entry(workspace);
    this.#content += 1;
    entry.content = this.#content;
    entry.gates = TYPES.filter(() => draws.below(4) === 0);
    const conditions = new Map<string, Condition>(
      TYPES.map((type) => [type, { type, status: draws.below(4) > 0 ? 'True' : 'False', message: 'ok' }]),
    );
    entry.conditions = new Map([...conditions].map(([type, { status }]) => [type, { status, text: 'ok' }]));
    this.#push(revision, (data) => ({ ...this.dataOf(entry, data), conditions }));
    if (draws.below(2) === 0) this.#tamper(workspace, draws);
    return { attack: 'subverted proposal' };
  }

  #lose(draws: Draws): ForeignMove {
    if (draws.below(2) === 0) return NOTHING;
    this.#world.records.lose();
    this.#model.deletedContent = undefined;
    this.#world.store.forget();
    this.#model.records.lose();
    return { attack: 'lost ledger' };
  }

  #rotate(draws: Draws): ForeignMove {
    if (draws.below(2) === 0 || !this.#world.records.rotate()) return NOTHING;
    this.#model.records.rotate(this.#world.records.key);
    return { attack: 'revoked key' };
  }

  #putRecord(workspace: string, oid: string | undefined): void {
    this.#set(recordRefOf(workspace), oid);
    if (oid === undefined) this.#model.records.held.delete(workspace);
    else this.#model.records.held.set(workspace, oid);
  }

  #note(tag: string | undefined, commit: string): void {
    if (tag === undefined || !this.#world.store.isInBand(tag, commit)) return;
    const known = this.#published.get(tag);
    if (known === undefined) this.#published.set(tag, new Set([commit]));
    else known.add(commit);
  }

  #set(ref: string, oid: string | undefined): void {
    this.#world.store.set(ref, oid, false);
  }

  #on<Revision>(revision: Revision | undefined, act: (revision: Revision) => ForeignMove): ForeignMove {
    return revision === undefined ? NOTHING : act(revision);
  }

  #entry(workspace: string): ModelRevision {
    const entry = this.#model.entries.get(workspace);
    if (entry === undefined) throw new Error(`the model does not know ${workspace}`);
    return entry;
  }
}

function branchOf(lifecycle: string, workspace: string): string {
  return (lifecycle === 'Draft' ? draftRef : proposedRef)(LAYOUT, revisionKeyOf(workspace));
}

function tagOf(version: string): string {
  return tagRef(LAYOUT, PACKAGE, version);
}
