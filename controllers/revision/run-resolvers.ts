import { gatesOf } from '../../kptfile-schema/index.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { evaluateGates } from '../../src/package/model/gates/gates.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import { forContent, namesFunctions, permittedRendering, RENDERED } from '../../src/package/plan/edit/render.ts';
import type { Renderer, Rendering } from '../../src/package/plan/ports/renderer.ts';
import type { Resolver, ResolverContext } from '../../src/package/plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import {
  type Arrangement,
  applicableResolvers,
  appliesOrFails,
  patternsOverlap,
  type ResolverProblem,
} from './arrange-resolvers.ts';
import { type Call, checkResolution, newCall, publicMessage, withTimeout } from './call-resolver.ts';
import { diffFiles } from './diff-files.ts';
import { applyResult, type Contributions, compareStates, RENDERER, type RunState, startState } from './run-state.ts';
import type { WorkingPackage } from './working-package.ts';

/** Maximum number of rounds that may change the package; the following one must change nothing. */
export const MAX_ROUNDS = 3;

export interface RunOptions {
  readonly context: ResolverContext;
  readonly clock: Clock;
  readonly renderer?: Renderer | undefined;
  /** Namespace of the repository. */
  readonly namespace: string;
  /** Timeout of one resolver in milliseconds. */
  readonly timeout: number;
  /** Name of the only resolver to run. */
  readonly only?: string | undefined;
}

export interface ResolverFailure {
  readonly resolver: string;
  /** One line without secrets. */
  readonly message: string;
  readonly error: unknown;
}

export interface Unsettled {
  /** The change, and the resolvers that made it. */
  readonly changes: string;
  /**
   * The changes of the pipeline in the last round, as lines of a diff of its files, if the pipeline alone does not
   * settle.
   */
  readonly pipeline: string | undefined;
}

export interface RunOutcome {
  readonly package: WorkingPackage;
  readonly contributions: Contributions;
  /** Names of all resolvers that apply to the package, sorted. */
  readonly applicable: readonly string[];
  /** Those that have reported on the package in its final state. */
  readonly reported: ReadonlySet<string>;
  /** Resolvers that were skipped, and the condition types (or prefixes) that they wait for. */
  readonly waiting: ReadonlyMap<string, readonly string[]>;
  readonly failures: readonly ResolverFailure[];
  /** Problems of the configuration that affect this package. */
  readonly problems: readonly ResolverProblem[];
  /** Remaining changes in the last round; undefined if the package settled. */
  readonly unsettled: Unsettled | undefined;
  /** True if the renderer returned a result. */
  readonly rendered: boolean;
  /** Reason why the package cannot be rendered, the same at every attempt. */
  readonly renderFailure: string | undefined;
  /** Notes of the pipeline for users, without effect on the run. */
  readonly notes: readonly string[];
  /** Conditions that a policy does not permit the pipeline to issue, one sentence each. */
  readonly refused: readonly string[];
  /** The shortest wait that a resolver requested. Milliseconds. */
  readonly requeueAfter: number | undefined;
  /** True if only one resolver ran, so that missing results of other resolvers have no meaning. */
  readonly partial: boolean;
}

/**
 * Runs renderer and resolvers over a package in memory, round by round, until a whole round changes nothing. Does not write to
 * Git.
 */
export async function runResolvers(
  evaluation: RevisionEvaluation,
  arrangement: Arrangement,
  options: RunOptions,
): Promise<RunOutcome> {
  const run = new Run(evaluation, options);
  const { only } = options;
  const resolvers = arrangement.order.filter(({ name }) => only === undefined || name === only);
  let unsettled: Unsettled | undefined;
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const before = run.state;
    await run.round(resolvers, arrangement.all);
    const diff = compareStates(before, run.state);
    unsettled = undefined;
    if (diff === undefined || run.isStuck) break;
    const alone = diff.by.size === 1 && diff.by.has(RENDERER);
    unsettled = { changes: diff.changes, pipeline: alone ? diffFiles(before, run.state) || diff.changes : undefined };
  }
  const { subject } = run.state.package;
  return {
    ...run.state,
    applicable: applicableResolvers(arrangement.all, subject, options.renderer !== undefined),
    reported: run.reported,
    waiting: run.waiting,
    failures: [...run.failures.values()],
    problems: arrangement.problems.filter(({ stopped }) =>
      stopped.some((resolver) => appliesOrFails(resolver, subject)),
    ),
    unsettled,
    rendered: run.rendered,
    renderFailure: run.renderFailure,
    notes: run.notes,
    refused: run.refused,
    requeueAfter: run.requeueAfter,
    partial: only !== undefined,
  };
}

class Run {
  readonly #evaluation: RevisionEvaluation;
  readonly #options: RunOptions;
  readonly #calls = new Map<string, Call>();
  readonly failures = new Map<string, ResolverFailure>();
  state: RunState;
  reported = new Set<string>();
  waiting = new Map<string, readonly string[]>();
  requeueAfter: number | undefined;
  rendered = false;
  renderFailure: string | undefined;
  /** The package cannot be rendered: another round would take as long, with the same result. */
  isStuck = false;
  notes: readonly string[] = [];
  refused: readonly string[] = [];

  constructor(evaluation: RevisionEvaluation, options: RunOptions) {
    this.#evaluation = evaluation;
    this.#options = options;
    this.state = startState(evaluation);
  }

  async round(resolvers: readonly Resolver[], all: readonly Resolver[]): Promise<void> {
    this.reported = new Set();
    this.waiting = new Map();
    this.requeueAfter = undefined;
    if (!(await this.#render())) return;
    for (const resolver of resolvers) {
      const { name, waitsFor = [] } = resolver;
      if (this.failures.has(name)) continue;
      try {
        if (!resolver.applies(this.state.package.subject)) continue;
        const missing = waitsFor.filter((pattern) => !this.#isMet(pattern, all));
        if (missing.length > 0) this.waiting.set(name, missing);
        else await this.#call(resolver);
      } catch (error) {
        // An aborted run is no failure of the resolver.
        this.#options.context.signal.throwIfAborted();
        this.#fail(resolver, error);
      }
    }
  }

  /** Renders the package, if there is a renderer. False if resolvers must not run on the result. */
  async #render(): Promise<boolean> {
    const { renderer, namespace, only } = this.#options;
    const { signal } = this.#options.context;
    if (renderer === undefined || only !== undefined) return true;
    if (this.failures.has(RENDERER)) return false;
    const { policy } = this.#evaluation;
    try {
      const { files } = this.state.package.subject;
      const { validatorConditions, pinnedValidators } = policy;
      const request = { files, namespace, validatorConditions, pinnedValidators, signal };
      const returned = (await renderer.render(request)) ?? this.#withoutFunctions();
      this.rendered = returned !== undefined;
      if (returned === undefined) return true;
      const { rendering, refused } = permittedRendering(returned, policy, this.#evaluation.record.contributors ?? []);
      const answer = { ...rendering, conditions: (rendering.conditions ?? []).map(forContent) };
      checkResolution(RENDERER, ['*'], answer, this.state.package.inputs);
      this.state = applyResult(this.state, RENDERER, answer);
      this.notes = rendering.notes ?? [];
      this.refused = refused;
      this.#wait(rendering.requeueAfter);
      this.renderFailure = rendering.failure;
      if (rendering.failure === undefined) this.reported.add(RENDERER);
      // Functions that could not be run prove no fault of the package.
      const continues = rendering.failure === undefined || rendering.unavailable === true;
      this.isStuck = !continues && (rendering.edits?.size ?? 0) === 0;
      return continues;
    } catch (error) {
      signal.throwIfAborted();
      this.failures.set(RENDERER, { resolver: RENDERER, message: publicMessage(error), error });
      return false;
    }
  }

  /** A package without functions counts as rendered; the condition is issued where a gate requires it. */
  #withoutFunctions(): Rendering | undefined {
    const isRequired = this.#evaluation.gates.some(({ type }) => type === RENDERED.type);
    const { files } = this.state.package.subject;
    return isRequired && namesFunctions(files) === false ? { kptfile: [], conditions: [RENDERED] } : undefined;
  }

  async #call(resolver: Resolver): Promise<void> {
    const { context, clock, timeout } = this.#options;
    const { name, claims } = resolver;
    const { subject } = this.state.package;
    const call = this.#calls.get(name) ?? newCall(context);
    this.#calls.set(name, call);
    const resolution = await withTimeout((own) => resolver.resolve(subject, own), call, clock, timeout);
    checkResolution(name, claims, resolution, this.state.package.inputs);
    this.state = applyResult(this.state, name, resolution);
    this.reported.add(name);
    this.#wait(resolution.requeueAfter);
  }

  #wait(requeueAfter: number | undefined): void {
    if (requeueAfter !== undefined) this.requeueAfter = Math.min(this.requeueAfter ?? requeueAfter, requeueAfter);
  }

  #fail({ name, claims }: Resolver, error: unknown): void {
    const message = publicMessage(error);
    this.failures.set(name, { resolver: name, message, error });
    const { kptfile, conditions } = this.state.package.subject;
    const known = [...conditions.keys(), ...gatesOf(kptfile)];
    const types = claims.flatMap((claim) =>
      claim.endsWith('*') ? known.filter((type) => matchesPattern(claim, type)) : [claim],
    );
    const reason = 'ResolverFailed';
    const text = `resolver ${name}: ${message}`;
    const given = [...new Set(types)].map((type) => ({ type, status: 'False', reason, message: text }) as const);
    this.state = applyResult(this.state, name, { conditions: given });
  }

  /** True if a condition, or every condition of a prefix, is True for the package in its current state. */
  #isMet(pattern: string, all: readonly Resolver[]): boolean {
    const { subject } = this.state.package;
    if (!pattern.endsWith('*')) return this.#isOpen(pattern);
    // Every resolver that could add a condition of this prefix must have reported.
    const open = all.some(
      (other) =>
        this.#options.only === undefined &&
        other.claims.some((claim) => patternsOverlap(claim, pattern)) &&
        !this.reported.has(other.name) &&
        appliesOrFails(other, subject),
    );
    if (open) return false;
    return [...subject.conditions.keys()].every((type) => !matchesPattern(pattern, type) || this.#isOpen(type));
  }

  #isOpen(type: string): boolean {
    const { package: current, contributions } = this.state;
    const { conditions } = current.subject;
    if (contributions.conditions.has(type)) return conditions.get(type)?.status === 'True';
    const { record, policy, at } = this.#evaluation;
    const facts = { gates: [type], conditions, record, inputs: current.inputs };
    return evaluateGates(facts, { ...policy, requiredGates: [] }, at)[0]?.state === 'Open';
  }
}

/** Returns the error for which the controller retries; undefined if no resolver failed. */
export function failureOf(failures: readonly ResolverFailure[]): SluiceError | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const text = failures.map(({ resolver, message }) => `${resolver}: ${message}`).join('; ');
  return new SluiceError('Unavailable', `resolvers failed and are retried: ${text}`, { cause: first.error });
}
