import { gatesOf } from '../../kptfile-schema/index.ts';
import type { Clock } from '../../src/foundation/clock.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { evaluateGates } from '../../src/package/gates.ts';
import { matchesPattern } from '../../src/package/policy.ts';
import type { Renderer } from '../../src/package/renderer.ts';
import type { Resolver, ResolverContext } from '../../src/package/resolver.ts';
import type { Judgement } from '../../src/package/revision-store.ts';
import {
  type Arrangement,
  appliesOrFails,
  claimants,
  patternsOverlap,
  type ResolverProblem,
} from './arrange-resolvers.ts';
import { type Call, checkResolution, newCall, publicMessage, withTimeout } from './call-resolver.ts';
import { type Contributions, type RunState, startState, takeAnswer, whatChanged } from './run-state.ts';
import type { WorkingPackage } from './working-package.ts';

/** Rounds that may change something; the one after them must be quiet. */
export const MAX_ROUNDS = 3;
/** The name under which the renderer appears. */
export const RENDERER = 'render';
/** The condition that says that rendering failed; kpt's own. */
const RENDERED_TYPE = 'Rendered';

export interface RunOptions {
  readonly context: ResolverContext;
  readonly clock: Clock;
  readonly renderer?: Renderer | undefined;
  /** Milliseconds that one resolver may take. */
  readonly timeout: number;
  /** Runs this one alone. */
  readonly only?: string | undefined;
}

export interface ResolverFailure {
  readonly resolver: string;
  /** One line, fit for everybody. */
  readonly message: string;
  readonly error: unknown;
}

export interface RunOutcome {
  readonly package: WorkingPackage;
  readonly contributions: Contributions;
  /** Names of all resolvers that the package is the business of, sorted. */
  readonly claimants: readonly string[];
  /** Those of them that have answered for the package as it now is. */
  readonly reported: ReadonlySet<string>;
  /** Resolvers that were passed over, and the condition types (or prefixes) that they wait for. */
  readonly waiting: ReadonlyMap<string, readonly string[]>;
  readonly failures: readonly ResolverFailure[];
  /** Problems of the configuration that concern this package. */
  readonly problems: readonly ResolverProblem[];
  /** What was still changing in the last round, and by whom, if nothing came to rest. */
  readonly unsettled: string | undefined;
  /** The shortest wait that a resolver asked for. Milliseconds. */
  readonly requeueAfter: number | undefined;
  /** Only one resolver ran, so nothing follows from the silence of the others. */
  readonly partial: boolean;
}

/** Runs renderer and resolvers over a package in memory, round by round, until a whole round changes nothing. Writes nothing. */
export async function runResolvers(
  judgement: Judgement,
  arrangement: Arrangement,
  options: RunOptions,
): Promise<RunOutcome> {
  const run = new Run(judgement, options);
  const { renderer, only } = options;
  const steps: Step[] = arrangement.order
    .filter(({ name }) => only === undefined || name === only)
    .map((resolver) => ({ resolver, failureTypes: resolver.claims, rendering: false }));
  if (renderer !== undefined && only === undefined) steps.unshift(renderStep(renderer));
  const awaited = arrangement.all;
  let unsettled: string | undefined;
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const before = run.state;
    await run.round(steps, awaited);
    unsettled = whatChanged(before, run.state);
    if (unsettled === undefined) break;
  }
  const { subject } = run.state.package;
  return {
    ...run.state,
    claimants: claimants(arrangement.all, subject),
    reported: run.reported,
    waiting: run.waiting,
    failures: [...run.failures.values()],
    problems: arrangement.problems.filter(({ stopped }) =>
      stopped.some((resolver) => appliesOrFails(resolver, subject)),
    ),
    unsettled,
    requeueAfter: run.requeueAfter,
    partial: only !== undefined,
  };
}

interface Step {
  readonly resolver: Resolver;
  /** What becomes False if it fails. */
  readonly failureTypes: readonly string[];
  readonly rendering: boolean;
}

function renderStep(renderer: Renderer): Step {
  const resolver: Resolver = {
    name: RENDERER,
    claims: ['*'],
    applies: () => true,
    resolve: async ({ files }, { signal }) =>
      (await renderer.render({ files, namespace: '', validatorConditions: new Map(), signal })) ?? {},
  };
  return { resolver, failureTypes: [RENDERED_TYPE], rendering: true };
}

class Run {
  readonly #judgement: Judgement;
  readonly #options: RunOptions;
  readonly #calls = new Map<string, Call>();
  readonly failures = new Map<string, ResolverFailure>();
  state: RunState;
  reported = new Set<string>();
  waiting = new Map<string, readonly string[]>();
  requeueAfter: number | undefined;

  constructor(judgement: Judgement, options: RunOptions) {
    this.#judgement = judgement;
    this.#options = options;
    this.state = startState(judgement);
  }

  async round(steps: readonly Step[], all: readonly Resolver[]): Promise<void> {
    this.reported = new Set();
    this.waiting = new Map();
    this.requeueAfter = undefined;
    for (const step of steps) {
      const { name, waitsFor = [] } = step.resolver;
      // What is not rendered is not ready to be judged.
      if (this.failures.has(RENDERER)) return;
      if (this.failures.has(name)) continue;
      try {
        if (!step.resolver.applies(this.state.package.subject)) continue;
        const missing = waitsFor.filter((pattern) => !this.#isMet(pattern, all));
        if (missing.length > 0) this.waiting.set(name, missing);
        else await this.#call(step.resolver);
      } catch (error) {
        // A run that is given up says nothing about the resolver.
        this.#options.context.signal.throwIfAborted();
        this.#fail(step, error);
      }
    }
  }

  async #call(resolver: Resolver): Promise<void> {
    const { context, clock, timeout } = this.#options;
    const { name, claims } = resolver;
    const { subject } = this.state.package;
    const call = this.#calls.get(name) ?? newCall(context);
    this.#calls.set(name, call);
    const resolution = await withTimeout((own) => resolver.resolve(subject, own), call, clock, timeout);
    checkResolution(name, claims, resolution, this.state.package.inputs);
    this.state = takeAnswer(this.state, name, resolution);
    this.reported.add(name);
    const { requeueAfter } = resolution;
    if (requeueAfter !== undefined) this.requeueAfter = Math.min(this.requeueAfter ?? requeueAfter, requeueAfter);
  }

  #fail(step: Step, error: unknown): void {
    const { name } = step.resolver;
    const message = publicMessage(error);
    this.failures.set(name, { resolver: name, message, error });
    const { kptfile, conditions } = this.state.package.subject;
    const known = [...conditions.keys(), ...gatesOf(kptfile)];
    const types = step.failureTypes.flatMap((claim) =>
      claim.endsWith('*') ? known.filter((type) => matchesPattern(claim, type)) : [claim],
    );
    const reason = step.rendering ? 'RenderFailed' : 'ResolverFailed';
    const text = step.rendering ? message : `resolver ${name}: ${message}`;
    const given = [...new Set(types)].map((type) => ({ type, status: 'False', reason, message: text }) as const);
    this.state = takeAnswer(this.state, name, { conditions: given });
  }

  /** Whether a condition, or all of a prefix, is True for the package as it is now. */
  #isMet(pattern: string, all: readonly Resolver[]): boolean {
    const { subject } = this.state.package;
    if (!pattern.endsWith('*')) return this.#isOpen(pattern);
    // Who could still add a condition of this prefix must have had the chance.
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
    const { record, policy } = this.#judgement;
    const facts = { gates: [type], conditions, record, inputs: current.inputs };
    return evaluateGates(facts, { ...policy, requiredGates: [] })[0]?.state === 'Open';
  }
}

/** The error that makes a controller try again later; undefined if nothing failed. */
export function failureOf(failures: readonly ResolverFailure[]): SluiceError | undefined {
  const [first] = failures;
  if (first === undefined) return undefined;
  const text = failures.map(({ resolver, message }) => `${resolver}: ${message}`).join('; ');
  return new SluiceError('Unavailable', `resolvers failed, to be tried again: ${text}`, { cause: first.error });
}
