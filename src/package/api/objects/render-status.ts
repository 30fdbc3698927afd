import type { PipelineStepResult, RenderStatus, ResultItem } from '../../../../kptfile-schema/index.ts';
import type { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';

type Status = NonNullable<NonNullable<ObjectOf<typeof packageRevisionResourcesKind>['status']>['renderStatus']>;
type FunctionResult = NonNullable<NonNullable<Status['result']>['items']>[number];
type Finding = NonNullable<FunctionResult['results']>[number];

/** Converts the result of a render to the form of Porch's API; empty if no function has run. */
export function renderStatusOf(status: RenderStatus | undefined): Status {
  if (status === undefined) return {};
  const steps = [...(status.mutationSteps ?? []), ...(status.validationSteps ?? [])];
  const failed = steps.find((step) => (step.exitCode ?? 0) !== 0 || step.executionError !== undefined);
  const exitCode = status.errorSummary === undefined && failed === undefined ? 0 : failed?.exitCode || 1;
  return {
    result: { exitCode, items: steps.map(resultOf) },
    ...(status.errorSummary === undefined ? {} : { error: status.errorSummary }),
  };
}

function resultOf({
  image,
  exec,
  stderr,
  exitCode = 0,
  executionError,
  errorResults = [],
  // Results of severity error are in both lists.
  results = errorResults,
}: PipelineStepResult): FunctionResult {
  const found = results.map(findingOf);
  // Porch has the words of a function that failed; what one prints on its way is not among the results.
  const failed = exitCode !== 0 || executionError !== undefined;
  const reported = failed ? (stderr ?? executionError) : undefined;
  return {
    ...(image === undefined ? {} : { image }),
    ...(exec === undefined ? {} : { exec }),
    ...(reported === undefined ? {} : { stderr: reported }),
    exitCode: executionError === undefined ? exitCode : exitCode || 1,
    ...(found.length === 0 ? {} : { results: found }),
  };
}

function findingOf({ field, ...item }: ResultItem): Finding {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const { path, currentValue, proposedValue } = field ?? {};
  return {
    ...(item as Finding),
    ...(field === undefined
      ? {}
      : {
          field: {
            ...(path === undefined ? {} : { path }),
            ...(currentValue === undefined ? {} : { currentValue: text(currentValue) }),
            ...(proposedValue === undefined ? {} : { proposedValue: text(proposedValue) }),
          },
        }),
  };
}
