import {
  type Kptfile,
  type PipelineStepResult,
  type RenderStatus,
  type ResultItem,
  readKptfile,
} from '../../../kptfile-schema/index.ts';
import { ellipsize } from '../../foundation/text/shorten.ts';
import type { IssuedCondition } from '../../package/model/gates/verdict.ts';
import { RENDERED } from '../../package/plan/edit/render.ts';
import type { Rendering } from '../../package/plan/ports/renderer.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { describeFinding } from '../model/describe-finding.ts';
import type { PipelineOutcome, PipelineStep } from '../model/pipeline.ts';
import { kptfileChanges } from '../pipeline/kptfile-changes.ts';

/** Functions that could not be run are tried again after this time. */
const RETRY_AFTER_MS = 5 * 60_000;
/** Findings in the message of a condition. */
const MAX_FINDINGS = 10;
const MAX_MESSAGE_CHARACTERS = 2000;
/** Findings of one function in a Kptfile, and characters of those of all. */
const MAX_RESULTS = 50;
const MAX_STATUS_CHARACTERS = 64 * 1024;
/** Reason of the condition of a validator without a result. */
const CHECK_FAILED = 'ValidatorFailed';

/** The result of rendering, before it is compared with the status of the last render in the Kptfile. */
export interface FoundRendering {
  readonly rendering: Rendering;
  readonly status: RenderStatus;
  /** False if the same package may render otherwise the next time. */
  readonly lasting: boolean;
}

/** Converts a pipeline's outcome to a Rendering. `kptfile` is the text of the package's own Kptfile before. */
export function renderingOf(outcome: PipelineOutcome, kptfile: string): FoundRendering {
  const { edits, steps, failure, notes, ignored = [] } = outcome;
  const changes = kptfileChanges(kptfile, edits.get('Kptfile') ?? kptfile);
  const unavailable = failure !== undefined && steps.at(-1)?.unavailable === true;
  const lasting = !steps.some((step) => step.unavailable === true || step.result.executionError !== undefined);
  const allNotes = [...notes, ...changes.notes];
  const rendering: Rendering = {
    edits: new Map([...edits].filter(([path]) => path !== 'Kptfile')),
    kptfile: changes.edits,
    conditions: [...changes.conditions, renderedCondition(failure), ...validatorConditions(steps, failure)],
    withdraw: changes.withdraw.filter((type) => type !== RENDERED.type),
    gates: changes.gates,
    ...(allNotes.length === 0 ? {} : { notes: allNotes }),
    ...(ignored.length === 0 ? {} : { ignored }),
    ...(failure === undefined ? {} : { failure }),
    ...(unavailable ? { unavailable } : {}),
    ...(lasting ? {} : { requeueAfter: RETRY_AFTER_MS }),
  };
  return { rendering, status: renderStatus(steps, failure), lasting };
}

/**
 * The rendering with what it writes into `status.renderStatus`: only where the Kptfile has it already, or with `isKept`, as older
 * kpt rejects a Kptfile with it. An existing status stays while functions and problems are the same: findings about successful
 * changes differ at every run, and would make every render a commit.
 */
export function withRenderStatus(found: FoundRendering, kptfile: string, { isKept = false } = {}): Rendering {
  const { status, lasting } = found;
  const read = readKptfile(kptfile);
  const known = read.ok ? read.kptfile.status : undefined;
  const before = known?.renderStatus;
  const rendering = { ...found.rendering, renderStatus: status };
  const isSame =
    before !== undefined && sameValue(comparableStatus(before, lasting), comparableStatus(status, lasting));
  if (!isSame && (before !== undefined || isKept))
    return { ...rendering, kptfile: [...rendering.kptfile, { op: 'setRenderStatus', renderStatus: status }] };
  return lasting ? rendering : { ...rendering, conditions: keepMessages(rendering, known?.conditions ?? [], isSame) };
}

/** Keeps the existing message of a condition if the new one differs only in ports, times and ids. */
function keepMessages(
  { conditions = [] }: Rendering,
  known: NonNullable<NonNullable<Kptfile['status']>['conditions']>,
  isSame: boolean,
): readonly IssuedCondition[] {
  return conditions.map((given) => {
    if (given.type !== RENDERED.type && given.reason !== CHECK_FAILED) return given;
    const { message } = known.find(({ type, reason }) => type === given.type && reason === given.reason) ?? {};
    if (message === undefined) return given;
    return isSame || withoutVaryingWords(message) === withoutVaryingWords(given.message)
      ? { ...given, message }
      : given;
  });
}

function renderedCondition(failure: string | undefined): IssuedCondition {
  if (failure === undefined) return RENDERED;
  return { type: RENDERED.type, status: 'False', reason: 'RenderFailed', message: cut(failure) };
}

/** One condition for each type that was requested of validators. */
function validatorConditions(steps: readonly PipelineStep[], failure: string | undefined): IssuedCondition[] {
  // The validator did not get the changes of a later mutator.
  const sawFinalPackage = (step: PipelineStep) =>
    step.pinned === true && !steps.slice(steps.indexOf(step)).some(({ list }) => list === 'mutators');
  const byType = Map.groupBy(steps, ({ conditionType }) => conditionType);
  return [...byType].flatMap(([type, given]) => {
    if (type === undefined) return [];
    const condition = { ...validatorCondition(type, given), ...(given.some(sawFinalPackage) ? { pinned: true } : {}) };
    if (failure === undefined || condition.status !== 'True') return [condition];
    // The validated output is not kept, and other validators of this type may not have run.
    return [{ type, status: 'Unknown', reason: CHECK_FAILED, message: 'the package could not be rendered' }];
  });
}

function validatorCondition(type: string, steps: readonly PipelineStep[]): IssuedCondition {
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
  const shown = errors.slice(0, MAX_FINDINGS).map(describeFinding);
  if (errors.length > MAX_FINDINGS) shown.push(`and ${errors.length - MAX_FINDINGS} more`);
  const output = shown.length > 0 ? shown : steps.flatMap(({ result }) => result.stderr ?? []);
  return { type, status: 'False', reason: 'ValidationFailed', message: cut(`${names}: ${output.join('; ')}`) };
}

function renderStatus(steps: readonly PipelineStep[], failure: string | undefined): RenderStatus {
  const bounded = boundedSteps(steps);
  const of = (list: PipelineStep['list']) => bounded.filter((step) => step.list === list).map(({ result }) => result);
  const [mutationSteps, validationSteps] = [of('mutators'), of('validators')];
  return {
    ...(mutationSteps.length === 0 ? {} : { mutationSteps }),
    ...(validationSteps.length === 0 ? {} : { validationSteps }),
    ...(failure === undefined ? {} : { errorSummary: cut(failure) }),
  };
}

/** The steps with a bounded number of findings: a Kptfile that is too large cannot be read. */
function boundedSteps(steps: readonly PipelineStep[]): Pick<PipelineStep, 'list' | 'result'>[] {
  let left = MAX_STATUS_CHARACTERS;
  const some = (findings: readonly ResultItem[]) => {
    const kept: ResultItem[] = [];
    for (const finding of findings) {
      left -= JSON.stringify(finding).length;
      if (kept.length === MAX_RESULTS || left < 0) break;
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

/** Returns the relevant part of a render status for a comparison: which functions ran, and their problems. */
function comparableStatus(
  { mutationSteps = [], validationSteps = [], errorSummary }: RenderStatus,
  lasting: boolean,
): unknown {
  const step = ({
    name,
    image,
    exec,
    exitCode = 0,
    executionError,
    results = [],
    errorResults,
  }: PipelineStepResult) => ({
    ...{ name, image, exec, exitCode, executionError: withoutVaryingWords(executionError), errorResults },
    results: results.filter(({ severity }) => severity !== 'info' && severity !== undefined),
  });
  const summary = lasting ? errorSummary : withoutVaryingWords(errorSummary);
  return [mutationSteps.map(step), validationSteps.map(step), summary];
}

/** A text without the words that have digits in them: times, ports, ids. */
function withoutVaryingWords(text: string | undefined): string | undefined {
  return text?.replace(/\b(?=[a-z_]*\d)\w+/gi, '0');
}

function cut(text: string): string {
  return ellipsize(text, MAX_MESSAGE_CHARACTERS);
}
