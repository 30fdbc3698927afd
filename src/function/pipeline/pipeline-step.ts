import type { KptFunction, ResultItem } from '../../../kptfile-schema/index.ts';
import { completeImage } from '../catalog/image-name.ts';
import type { PipelineStep } from '../model/pipeline.ts';
import type { PipelinePackage } from './packages.ts';
import type { FunctionRun } from './run-function.ts';

/** Findings of one function that are kept; nobody reads more, and a function can make any number of them. */
const MOST_RESULTS = 1000;
/** Characters of what a function says. */
const LONGEST_TEXT = 4000;

/** An entry of a pipeline, and where it stands. */
export interface Entry {
  readonly of: PipelinePackage;
  readonly list: PipelineStep['list'];
  readonly at: number;
  readonly fn: KptFunction;
}

/** The step of an entry; of one that has not run yet if there is no run. */
export function stepOf({ of, list, fn }: Entry, run: FunctionRun | undefined): PipelineStep {
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

/** Functions know files by their paths in the package that names them, people by those in the whole package. */
function withFile(result: ResultItem, folder: string): ResultItem {
  const { file } = result;
  if (folder === '' || file?.path === undefined) return result;
  return { ...result, file: { ...file, path: `${folder}/${file.path}` } };
}

/** The first findings, errors before others, with what is left out as the last one. */
function bounded(results: readonly ResultItem[]): readonly ResultItem[] {
  const short = (result: ResultItem) => ({ ...result, message: cut(result.message) ?? '' });
  if (results.length <= MOST_RESULTS) return results.map(short);
  const isError = ({ severity }: ResultItem) => severity === 'error';
  const sorted = [...results.filter(isError), ...results.filter((result) => !isError(result))];
  const left = { severity: 'info', message: `${results.length - MOST_RESULTS} more findings are left out` };
  return [...sorted.slice(0, MOST_RESULTS).map(short), left];
}

function cut(text: string | undefined): string | undefined {
  return text === undefined || text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT - 1)}…`;
}
