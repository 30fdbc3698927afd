import type { ResultItem } from '../../../kptfile-schema/index.ts';
import type { PipelineOutcome } from '../model/pipeline.ts';

/** The file that kpt writes for `--results-dir`. */
export interface FunctionResultList {
  readonly apiVersion: 'kpt.dev/v1';
  readonly kind: 'FunctionResultList';
  readonly metadata: { readonly name: 'fnresults' };
  /** 0 if the pipeline succeeded. */
  readonly exitCode: number;
  readonly items: readonly {
    readonly image?: string;
    readonly exec?: string;
    readonly stderr?: string;
    readonly exitCode: number;
    readonly results?: readonly ResultItem[];
  }[];
}

/** The results of all functions of a pipeline, in the order in which they ran. */
export function fnResultList({ steps, failure }: PipelineOutcome): FunctionResultList {
  const failed = steps.at(-1)?.result.exitCode;
  return {
    apiVersion: 'kpt.dev/v1',
    kind: 'FunctionResultList',
    metadata: { name: 'fnresults' },
    exitCode: failure === undefined ? 0 : failed || 1,
    items: steps.map(({ result: { image, exec, stderr, executionError, exitCode = 0, results = [] } }) => ({
      ...(image === undefined ? {} : { image }),
      ...(exec === undefined ? {} : { exec }),
      ...(stderr === undefined && executionError === undefined ? {} : { stderr: stderr ?? executionError }),
      exitCode,
      ...(results.length === 0 ? {} : { results }),
    })),
  };
}
