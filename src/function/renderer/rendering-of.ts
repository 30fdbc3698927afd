import {
  type Kptfile,
  type PipelineStepResult,
  type RenderStatus,
  type ResultItem,
  readKptfile,
} from '../../../kptfile-schema/index.ts';
import type { GivenCondition } from '../../package/model/verdict.ts';
import { RENDERED } from '../../package/plan/render.ts';
import type { Rendering } from '../../package/plan/renderer.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { describeFinding } from '../model/describe-finding.ts';
import type { PipelineOutcome, PipelineStep } from '../model/pipeline.ts';
import { kptfileChanges } from '../pipeline/kptfile-changes.ts';

/** After this many milliseconds it is tried again to run what could not be run. */
const RETRY_AFTER = 5 * 60_000;
/** Findings that a condition tells; more say no more. */
const MOST_FINDINGS = 10;
const LONGEST_MESSAGE = 2000;
/** Findings of one function that stand in a Kptfile, and characters of those of all. */
const MOST_RESULTS = 50;
const STATUS_CHARACTERS = 64 * 1024;
/** Reason of the condition of a validator that came to no result. */
const CHECK_FAILED = 'ValidatorFailed';

/** What rendering came to, before it is compared with what the Kptfile says of the last render. */
export interface FoundRendering {
  readonly rendering: Rendering;
  readonly status: RenderStatus;
  /** False if the same package may render otherwise the next time. */
  readonly lasting: boolean;
}

/** A pipeline's outcome in the terms of a resolver's answer. `kptfile` is the text of the package's own Kptfile before. */
export function renderingOf(outcome: PipelineOutcome, kptfile: string): FoundRendering {
  const { edits, steps, failure, notes } = outcome;
  const changes = kptfileChanges(kptfile, edits.get('Kptfile') ?? kptfile);
  const unavailable = failure !== undefined && steps.at(-1)?.unavailable === true;
  const lasting = !steps.some((step) => step.unavailable === true || step.result.executionError !== undefined);
  const told = [...notes, ...changes.notes];
  const rendering: Rendering = {
    edits: new Map([...edits].filter(([path]) => path !== 'Kptfile')),
    kptfile: changes.edits,
    conditions: [...changes.conditions, renderedCondition(failure), ...validatorConditions(steps, failure)],
    withdraw: changes.withdraw.filter((type) => type !== RENDERED.type),
    gates: changes.gates,
    ...(told.length === 0 ? {} : { notes: told }),
    ...(failure === undefined ? {} : { failure }),
    ...(unavailable ? { unavailable } : {}),
    ...(lasting ? {} : { requeueAfter: RETRY_AFTER }),
  };
  return { rendering, status: renderStatus(steps, failure), lasting };
}

/**
 * The rendering with what it writes into `status.renderStatus`: only where the Kptfile has it already, or `isKept` says so, as older
 * kpt rejects a Kptfile with it. What is there stays while it says the same of the same functions: what they are
 * glad to have changed differs at every run, and would make every render a commit.
 */
export function withRenderStatus(found: FoundRendering, kptfile: string, { isKept = false } = {}): Rendering {
  const { status, lasting } = found;
  const read = readKptfile(kptfile);
  const known = read.ok ? read.kptfile.status : undefined;
  const before = known?.renderStatus;
  const rendering = { ...found.rendering, renderStatus: status };
  const isSame = before !== undefined && sameValue(essence(before, lasting), essence(status, lasting));
  if (!isSame && (before !== undefined || isKept))
    return { ...rendering, kptfile: [...rendering.kptfile, { op: 'setRenderStatus', renderStatus: status }] };
  return lasting
    ? rendering
    : { ...rendering, conditions: steadyConditions(rendering, known?.conditions ?? [], isSame) };
}

/** Conditions with the messages that are there, where only ports, times and names in the text of what could not be run differ. */
function steadyConditions(
  { conditions = [] }: Rendering,
  known: NonNullable<NonNullable<Kptfile['status']>['conditions']>,
  isSame: boolean,
): readonly GivenCondition[] {
  return conditions.map((given) => {
    if (given.type !== RENDERED.type && given.reason !== CHECK_FAILED) return given;
    const { message } = known.find(({ type, reason }) => type === given.type && reason === given.reason) ?? {};
    if (message === undefined) return given;
    return isSame || steady(message) === steady(given.message) ? { ...given, message } : given;
  });
}

function renderedCondition(failure: string | undefined): GivenCondition {
  if (failure === undefined) return RENDERED;
  return { type: RENDERED.type, status: 'False', reason: 'RenderFailed', message: cut(failure) };
}

/** One condition for each type that validators were asked to give. */
function validatorConditions(steps: readonly PipelineStep[], failure: string | undefined): GivenCondition[] {
  // What a mutator changes afterwards the validator has not seen.
  const isLastWord = (step: PipelineStep) =>
    step.pinned === true && !steps.slice(steps.indexOf(step)).some(({ list }) => list === 'mutators');
  const byType = Map.groupBy(steps, ({ conditionType }) => conditionType);
  return [...byType].flatMap(([type, given]) => {
    if (type === undefined) return [];
    const condition = { ...validatorCondition(type, given), ...(given.some(isLastWord) ? { pinned: true } : {}) };
    if (failure === undefined || condition.status !== 'True') return [condition];
    // What was validated is not what is kept, and other validators of this type may not have run.
    return [{ type, status: 'Unknown', reason: CHECK_FAILED, message: 'the package could not be rendered' }];
  });
}

function validatorCondition(type: string, steps: readonly PipelineStep[]): GivenCondition {
  const names = steps.map(({ result }) => result.name ?? result.image ?? result.exec ?? '').join(', ');
  const broken = steps.find(({ result, unavailable }) => unavailable === true || result.executionError !== undefined);
  if (broken !== undefined) {
    const message = cut(`${names}: ${broken.result.executionError ?? broken.result.stderr ?? 'could not be run'}`);
    return { type, status: 'Unknown', reason: CHECK_FAILED, message };
  }
  const findings = steps.flatMap(({ result }) => result.results ?? []);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const failed = steps.some(({ result }) => (result.exitCode ?? 0) !== 0);
  if (errors.length === 0 && !failed) {
    const warnings = findings.filter(({ severity }) => severity === 'warning').length;
    const message = warnings === 0 ? `${names}: nothing found` : `${names}: ${warnings} warnings, no errors`;
    return { type, status: 'True', reason: 'ValidationPassed', message };
  }
  const shown = errors.slice(0, MOST_FINDINGS).map(describeFinding);
  if (errors.length > MOST_FINDINGS) shown.push(`and ${errors.length - MOST_FINDINGS} more`);
  const said = shown.length > 0 ? shown : steps.flatMap(({ result }) => result.stderr ?? []);
  return { type, status: 'False', reason: 'ValidationFailed', message: cut(`${names}: ${said.join('; ')}`) };
}

function renderStatus(steps: readonly PipelineStep[], failure: string | undefined): RenderStatus {
  const told = boundedSteps(steps);
  const of = (list: PipelineStep['list']) => told.filter((step) => step.list === list).map(({ result }) => result);
  const [mutationSteps, validationSteps] = [of('mutators'), of('validators')];
  return {
    ...(mutationSteps.length === 0 ? {} : { mutationSteps }),
    ...(validationSteps.length === 0 ? {} : { validationSteps }),
    ...(failure === undefined ? {} : { errorSummary: cut(failure) }),
  };
}

/** The steps with as many findings as a Kptfile can bear: one that is too large cannot be read any more. */
function boundedSteps(steps: readonly PipelineStep[]): Pick<PipelineStep, 'list' | 'result'>[] {
  let left = STATUS_CHARACTERS;
  const some = (findings: readonly ResultItem[]) => {
    const kept: ResultItem[] = [];
    for (const finding of findings) {
      left -= JSON.stringify(finding).length;
      if (kept.length === MOST_RESULTS || left < 0) break;
      kept.push(finding);
    }
    const more = findings.length - kept.length;
    return more === 0 ? kept : [...kept, { message: `and ${more} more`, severity: 'info' }];
  };
  return steps.map(({ list, result: { results, errorResults, stderr, executionError, ...result } }) => ({
    list,
    result: {
      ...result,
      ...(stderr === undefined ? {} : { stderr: cut(stderr) }),
      ...(executionError === undefined ? {} : { executionError: cut(executionError) }),
      ...(results === undefined ? {} : { results: some(results) }),
      ...(errorResults === undefined ? {} : { errorResults: some(errorResults) }),
    },
  }));
}

/** What of a render's status matters to people: which functions ran, and what is wrong. */
function essence({ mutationSteps = [], validationSteps = [], errorSummary }: RenderStatus, lasting: boolean): unknown {
  const step = ({
    name,
    image,
    exec,
    exitCode = 0,
    executionError,
    results = [],
    errorResults,
  }: PipelineStepResult) => ({
    ...{ name, image, exec, exitCode, executionError: steady(executionError), errorResults },
    results: results.filter(({ severity }) => severity !== 'info' && severity !== undefined),
  });
  const summary = lasting ? errorSummary : steady(errorSummary);
  return [mutationSteps.map(step), validationSteps.map(step), summary];
}

/** A text without the words that have digits in them: times, ports, ids. */
function steady(text: string | undefined): string | undefined {
  return text?.replace(/\b(?=[a-z_]*\d)\w+/gi, '0');
}

function cut(text: string): string {
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE - 1)}…`;
}
