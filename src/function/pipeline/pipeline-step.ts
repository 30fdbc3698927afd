import type { KptFunction, ResultItem } from '../../../kptfile-schema/index.ts';
import { completeImage } from '../catalog/image-name.ts';
import type { PipelinePackage } from './packages.ts';
import type { PipelineStep } from './pipeline.ts';
import type { FunctionRun } from './run-function.ts';

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
  const { exitCode, stderr, executionError, unavailable } = run;
  const results = run.results.map((result) => withFile(result, of.path));
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
