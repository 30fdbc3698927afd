import fc from 'fast-check';
import { knownCandidates } from './known-candidates.ts';
import type {
  Action,
  AnalysisKey,
  AnalysisObservation,
  Candidate,
  Observations,
  TargetObservation,
} from './observation.ts';
import { orderKey } from './order-key.ts';
import type { TargetRecord } from './plan-state.ts';
import type { PlanSpec, WaveSpec } from './wave-spec.ts';

interface Revision {
  readonly name: string;
  state: 'Proposed' | 'Gone' | 'Published';
  /** Unique among the revisions of its package. */
  commit: number;
  /** A user approved it, and the Git host merges it. */
  isApproved?: true | undefined;
  observation: TargetObservation;
}

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'] as const;
const RESULTS = ['Verified', 'Pending', 'Degraded', 'Failed', 'Unreachable', undefined] as const;
const ANALYSES = ['Successful', 'Running', 'Failed', 'Error', 'Inconclusive'] as const;

export type WorldEvent =
  /** `isOther`: in another workspace than the last revision of the package. */
  | { readonly type: 'propose'; readonly id: string; readonly isOther: boolean }
  | { readonly type: 'withdraw' | 'publish' | 'decide'; readonly id: string }
  | { readonly type: 'verify'; readonly ids: readonly string[]; readonly result: (typeof RESULTS)[number] }
  /** `close`: the repository of the package cannot be read. */
  | { readonly type: 'refuse' | 'fail' | 'close'; readonly id: string; readonly on: boolean }
  /** The selector of the plan matches none of these packages, although they are Proposed. */
  | { readonly type: 'deselect'; readonly ids: readonly string[] }
  /** A typing error in the selector of the plan: it matches nothing, until it is corrected. `blind`: the repository of the blueprint cannot be read. */
  | { readonly type: 'mistype' | 'blind'; readonly on: boolean }
  /** The selector of a wave matches these packages. */
  | { readonly type: 'name'; readonly wave: string; readonly ids: readonly string[] }
  | { readonly type: 'carryOut'; readonly most: number }
  | { readonly type: 'analyse'; readonly phase: (typeof ANALYSES)[number] }
  | { readonly type: 'approveWave' }
  | { readonly type: 'hide' | 'freeze'; readonly on: boolean }
  | { readonly type: 'spec'; readonly spec: Partial<PlanSpec> }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'crash'; readonly written: number };

const WAVES = ['one', 'two', 'three'] as const;
const amount = fc.oneof(
  fc.integer({ min: 0, max: 3 }).map((count) => ({ count })),
  fc.constantFrom(0, 20, 50).map((percent) => ({ percent })),
);
const wave = (name: string): fc.Arbitrary<WaveSpec> =>
  fc.record({
    name: fc.constant(name),
    size: fc.oneof(
      fc.constantFrom(1, 12.5, 30, 60, 100).map((percent) => ({ percent })),
      fc.integer({ min: 1, max: 4 }).map((count) => ({ count })),
      fc.constant({ selected: true as const }),
    ),
    soakMs: fc.constantFrom(0, 50, 200),
    approvals: fc.constantFrom(0, 0, 0, 1, 2),
    analyses: fc.constantFrom(0, 0, 0, 1, 2),
    maxConcurrency: fc.option(amount, { nil: undefined, freq: 2 }),
  });
const waves = fc
  .subarray([...WAVES], { minLength: 1 })
  .chain((names) => fc.tuple(...names.map(wave)) as fc.Arbitrary<WaveSpec[]>);

export const planSpec: fc.Arbitrary<PlanSpec> = fc.record({
  waves,
  ...{ maxFailures: amount, maxUnreachable: amount },
  progressDeadlineMs: fc.constantFrom(100, 1000),
  onFailure: fc.constantFrom('Pause' as const, 'Pause' as const, 'Rollback' as const),
  ...{ paused: fc.constant(false), abort: fc.constant(false), rollback: fc.constant(false) },
  ...{ resume: fc.constant(0), promotePast: fc.constant(undefined) },
});

const id = fc.constantFrom(...IDS);
const specChange: fc.Arbitrary<Partial<PlanSpec>> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ paused: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ resume: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ promotePast: fc.constantFrom(undefined, ...WAVES) }) },
  { weight: 2, arbitrary: fc.record({ waves }) },
  { weight: 1, arbitrary: fc.record({ abort: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ rollback: fc.boolean() }) },
);

/** Events of any kind; `crashes` says whether the process may end while it writes. */
export function worldEvents(crashes: boolean): fc.Arbitrary<WorldEvent[]> {
  const event: fc.Arbitrary<WorldEvent> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant('propose' as const), id, isOther: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constantFrom('withdraw' as const, 'publish' as const, 'decide' as const), id }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constant('verify' as const),
        ids: fc.subarray([...IDS], { minLength: 1 }),
        result: fc.constantFrom('Verified' as const, 'Verified' as const, ...RESULTS),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constantFrom('refuse' as const, 'fail' as const, 'close' as const),
        id,
        on: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('deselect' as const), ids: fc.subarray([...IDS]) }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('mistype' as const), on: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('blind' as const), on: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('name' as const),
        wave: fc.constantFrom(...WAVES),
        ids: fc.subarray([...IDS]),
      }),
    },
    { weight: 6, arbitrary: fc.record({ type: fc.constant('carryOut' as const), most: fc.constantFrom(1, 3, 9, 9) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('analyse' as const),
        phase: fc.constantFrom('Successful' as const, 'Successful' as const, ...ANALYSES),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ type: 'approveWave' as const }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constantFrom('hide' as const, 'freeze' as const), on: fc.boolean() }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('spec' as const), spec: specChange }) },
    {
      weight: 5,
      arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.constantFrom(1, 49, 50, 200, 1000) }),
    },
    ...(crashes
      ? [{ weight: 4, arbitrary: fc.record({ type: fc.constant('crash' as const), written: fc.nat({ max: 10 }) }) }]
      : []),
  );
  return fc.array(event, { minLength: 5, maxLength: 30 });
}

/** What surrounds a plan, apart from the plan itself. */
export class World {
  /** Of each package its revisions, the last one at the end. Only that one may be Proposed. */
  readonly #packages = new Map<string, Revision[]>();
  readonly #closed = new Set<string>();
  #deselected: ReadonlySet<string> = new Set();
  /** What the selector of each wave matches. */
  readonly #named = new Map<string, ReadonlySet<string>>([
    ['one', new Set(['a', 'b', 'c'])],
    ['two', new Set(['d', 'e', 'f', 'g', 'h', 'i'])],
  ]);
  readonly #runs = new Map<string, AnalysisObservation>();
  #approvals = 0;
  #isHidden = false;
  #isMistyped = false;
  #isBlind = false;
  #isFrozen = false;
  /** Changes with each event: only the order at the start of a plan, and of what joins later, counts. */
  #salt = 0;
  /** Times that each target was published by the plan. */
  readonly published: string[] = [];

  constructor(proposed: readonly string[]) {
    for (const id of proposed) this.#propose(id, false);
  }

  apply(event: WorldEvent, actions: readonly Action[], targets: ReadonlyMap<string, TargetRecord>): void {
    this.#salt += 1;
    switch (event.type) {
      case 'propose':
        this.#propose(event.id, event.isOther);
        break;
      case 'withdraw':
        this.#move(event.id, 'Gone');
        break;
      case 'publish':
        this.#move(event.id, 'Published');
        break;
      case 'decide':
        this.#decide(event.id);
        break;
      case 'verify':
        for (const name of event.ids) {
          const { result } = event;
          this.#note(name, { verification: result === undefined ? undefined : { result, message: result } });
        }
        break;
      case 'refuse':
        this.#note(event.id, { refusal: event.on ? 'a gate is closed' : undefined });
        break;
      case 'fail':
        this.#note(event.id, { failure: event.on ? 'no connection' : undefined });
        break;
      case 'close':
        if (event.on) this.#closed.add(event.id);
        else this.#closed.delete(event.id);
        break;
      case 'deselect':
        this.#deselected = new Set(event.ids);
        break;
      case 'mistype':
        this.#isMistyped = event.on;
        break;
      case 'blind':
        this.#isBlind = event.on;
        break;
      case 'name':
        this.#named.set(event.wave, new Set(event.ids));
        break;
      case 'carryOut':
        this.#carryOut(actions.slice(0, event.most), targets);
        break;
      case 'analyse':
        for (const key of this.#runs.keys()) this.#runs.set(key, { phase: event.phase, message: '' });
        break;
      case 'approveWave':
        this.#approvals += 1;
        break;
      case 'hide':
        this.#isHidden = event.on;
        break;
      case 'freeze':
        this.#isFrozen = event.on;
        break;
    }
  }

  /** True while it is not known what the selector selects. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  get observations(): Observations {
    const unread = { blueprint: this.#isBlind ? 'blueprints' : undefined, selected: undefined };
    const candidates = knownCandidates(() => this.#listed(), unread, true);
    // A revision is found by its name, whatever became of the commit that is recorded.
    const of = ({ id, revision }: TargetRecord): TargetObservation => {
      const { state, isApproved, observation } = this.#packages.get(id)?.find(({ name }) => name === revision) ?? {};
      // What verifies a target is still read.
      if (this.#closed.has(id)) return { ...observation, rollback: 'Done' };
      if (state === undefined) return { revision: { state: 'Gone' } };
      if (state === 'Published') return { ...observation, revision: { state, number: 1 }, rollback: 'Done' };
      const approved = state === 'Proposed' && isApproved === true ? { isApproved } : {};
      return { ...observation, revision: { state, ...approved }, rollback: 'Done' };
    };
    return {
      candidates: this.#isHidden ? undefined : candidates,
      isUnknown: (id) => this.#closed.has(id),
      of,
      approvalsOf: () => this.#approvals,
      analysisOf: (run) => this.#runs.get(runName(run)),
      isFrozen: this.#isFrozen,
    };
  }

  /** What a look at all packages finds. */
  #listed(): ReadonlyMap<string, Candidate> {
    const candidates = new Map<string, Candidate>();
    for (const id of this.#packages.keys()) {
      const { name: revision, state, commit } = this.#last(id) ?? {};
      if (revision === undefined || state !== 'Proposed' || this.#closed.has(id)) continue;
      // Nothing is seen to be made from a blueprint that cannot be read.
      if (this.#isMistyped || this.#isBlind || this.#deselected.has(id)) continue;
      const selectedBy = WAVES.filter((name) => this.#named.get(name)?.has(id) === true);
      candidates.set(id, { id, key: orderKey(id, `salt ${this.#salt}`), revision, commit: String(commit), selectedBy });
    }
    return candidates;
  }

  #carryOut(actions: readonly Action[], targets: ReadonlyMap<string, TargetRecord>): void {
    for (const action of actions) {
      if (action.type === 'Analyse') this.#runs.set(runName(action.run), { phase: 'Running', message: '' });
      if (action.type !== 'Approve' || this.#closed.has(action.id)) continue;
      const found = this.#last(action.id);
      if (found?.state !== 'Proposed' || found.observation.refusal !== undefined) continue;
      // An approval is for the revision and the commit that are recorded.
      const { revision, commit } = targets.get(action.id) ?? {};
      if (revision !== found.name || commit !== String(found.commit)) continue;
      found.state = 'Published';
      this.published.push(`${action.id} ${found.commit}`);
    }
  }

  #last(id: string): Revision | undefined {
    return this.#packages.get(id)?.at(-1);
  }

  #propose(id: string, isOther: boolean): void {
    const revisions = this.#packages.get(id) ?? [];
    const last = revisions.at(-1);
    if (last?.state === 'Proposed') return;
    const commit = (last?.commit ?? 0) + 1;
    if (last?.state === 'Gone' && !isOther)
      Object.assign(last, { state: 'Proposed', commit, isApproved: undefined, observation: {} });
    else revisions.push({ name: `${id}.w${revisions.length + 1}`, state: 'Proposed', commit, observation: {} });
    this.#packages.set(id, revisions);
  }

  #decide(id: string): void {
    const found = this.#last(id);
    if (found?.state === 'Proposed') found.isApproved = true;
  }

  #move(id: string, state: 'Gone' | 'Published'): void {
    const found = this.#last(id);
    if (found?.state === 'Proposed') found.state = state;
  }

  #note(id: string, observation: { [Key in keyof TargetObservation]?: TargetObservation[Key] | undefined }): void {
    for (const revision of this.#packages.get(id) ?? [])
      revision.observation = withoutUndefined({ ...revision.observation, ...observation });
  }
}

function withoutUndefined(value: object): TargetObservation {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}

function runName({ wave, attempt, index }: AnalysisKey): string {
  return `${wave} ${attempt} ${index}`;
}
