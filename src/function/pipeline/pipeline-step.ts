import type { KptFunction, PipelineStepResult, ResultItem } from '../../../kptfile-schema/index.ts';
import { ellipsize } from '../../foundation/text/shorten.ts';
import { completeImage } from '../catalog/image-name.ts';
import { describeFinding } from '../model/describe-finding.ts';
import type { PipelineStep } from '../model/pipeline.ts';
import type { PipelinePackage } from './packages.ts';
import type { FunctionRun } from './run-function.ts';

/** Findings of one function that are kept; a function can report any number of them. */
const MAX_RESULTS = 1000;
/** Characters of each text of a function. */
const MAX_TEXT_CHARACTERS = 4000;
/** Characters of the line that names a failure. */
const MAX_FAILURE_CHARACTERS = 500;

/** An entry of a pipeline, with its place. */
export interface PipelineEntry {
  readonly of: PipelinePackage;
  readonly list: PipelineStep['list'];
  readonly at: number;
  readonly fn: KptFunction;
}

/** The step of an entry; of one that has not run yet if there is no run. */
export function stepOf({ of, list, fn }: PipelineEntry, run: FunctionRun | undefined): PipelineStep {
  const { name, image, exec, tag } = fn;
  const named = {
    ...(name === undefined || name === '' ? {} : { name }),
    ...(image === undefined || image === '' ? {} : { image: completeImage(image, tag) }),
    ...(exec === undefined || exec === '' ? {} : { exec }),
  };
  if (run === undefined) return { packagePath: of.path, list, result: named };
  const { exitCode, unavailable } = run;
  const [stderr, executionError] = [cut(run.stderr), cut(run.executionError)];
  const results = bounded(run.results).map((result) => withFile(result, of.path));
  const errors = results.filter(({ severity }) => severity === 'error');
  return {
    packagePath: of.path,
    list,
    result: {
      ...named,
      ...(executionError === undefined ? {} : { executionError }),
      ...(stderr === undefined ? {} : { stderr }),
      exitCode,
      ...(results.length === 0 ? {} : { results }),
      ...(errors.length === 0 ? {} : { errorResults: errors }),
    },
    ...(unavailable === true ? { unavailable } : {}),
  };
}

/** Functions use paths relative to their package, messages those in the whole package. */
function withFile(result: ResultItem, folder: string): ResultItem {
  const { file } = result;
  if (folder === '' || file?.path === undefined) return result;
  return { ...result, file: { ...file, path: `${folder}/${file.path}` } };
}

/** Returns the first results, errors before others, and a last one with the number of omitted results. */
function bounded(results: readonly ResultItem[]): readonly ResultItem[] {
  const short = (result: ResultItem) => ({ ...result, message: cut(result.message) ?? '' });
  if (results.length <= MAX_RESULTS) return results.map(short);
  const isError = ({ severity }: ResultItem) => severity === 'error';
  const sorted = [...results.filter(isError), ...results.filter((result) => !isError(result))];
  const left = { severity: 'info', message: `${results.length - MAX_RESULTS} more findings are omitted` };
  return [...sorted.slice(0, MAX_RESULTS).map(short), left];
}

function cut(text: string | undefined): string | undefined {
  return text && ellipsize(text, MAX_TEXT_CHARACTERS);
}

/** The cause of a failed function, in one line. */
export function failureText({ errorResults = [], stderr, executionError, exitCode }: PipelineStepResult): string {
  const [first, ...others] = errorResults;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const why = first === undefined ? (executionError ?? stderr) : describeFinding(first) + more;
  // It is printed to terminals, which interpret control characters.
  const line = (why ?? '').replace(/[\s\p{Cc}]+/gu, ' ').trim() || `it ended with exit code ${exitCode}`;
  return ellipsize(line, MAX_FAILURE_CHARACTERS);
}
