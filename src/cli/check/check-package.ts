import { basename, resolve } from 'node:path';
import { conditionsOf, gatesOf, readKptfile } from '../../../kptfile-schema/index.ts';
import { type Finding, findingAt, findingsBelow } from '../../function/lint/finding.ts';
import { lintFiles } from '../../function/lint/lint-files.ts';
import { locateResults, placeIn, placeOfField } from '../../function/lint/locate-results.ts';
import type { PipelineRunner } from '../../function/model/pipeline.ts';
import type { CheckedFiles } from './merge-result.ts';

const MAX_NAMED_FILES = 5;
/** Results of the functions of one package. */
const MAX_RESULTS = 100;

/**
 * Checks one package folder, with the packages in it: its YAML files and Kptfiles, whether it is rendered, and its gates. Only built-in functions
 * run; what needs another one is a warning.
 */
export async function checkPackage(
  folder: string,
  { files, notes, refused, isConflicting = false }: CheckedFiles,
  runner: PipelineRunner,
  { requireGates, signal }: { readonly requireGates: boolean; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const findings = notes.map((message) => findingAt('Kptfile', { severity: 'warning', message, code: 'Skipped' }));
  findings.push(...refused, ...lintFiles(files));
  // A package that cannot be read cannot be rendered.
  const isReadable = !isConflicting && findings.every(({ severity }) => severity !== 'error');
  findings.push(...gateFindings(files, requireGates));
  if (!isReadable) return findingsBelow(folder, findings);

  const input = { files, rules: [], validatorConditions: new Map() };
  const { edits, steps, failure } = await runner.run(input, signal);
  const located = locateResults(
    steps.map(({ result }) => result),
    files,
    MAX_RESULTS,
  );
  findings.push(...located.filter(({ severity }) => severity !== 'notice'));
  if (steps.some(({ unavailable }) => unavailable === true)) {
    const message = `not checked whether it is rendered: ${failure ?? 'a function of its pipeline cannot be run here'}`;
    findings.push(findingAt('Kptfile', { severity: 'warning', message, code: 'NotRendered' }));
  } else if (failure !== undefined) {
    const { file, line } = placeIn(failure, files) ?? { file: 'Kptfile', line: 1 };
    findings.push({ ...{ file, line, column: 1 }, severity: 'error', message: failure, code: 'RenderFailed' });
  } else if (edits.size > 0) {
    const place = folder === '.' ? '' : `${folder}/`;
    const names = [...edits.keys()];
    const shown = names
      .slice(0, MAX_NAMED_FILES)
      .map((path) => `${place}${path}`)
      .join(', ');
    const more = names.length > MAX_NAMED_FILES ? ` and ${names.length - MAX_NAMED_FILES} more` : '';
    const message = `the pipeline of ${basename(resolve(folder))} changes ${shown}${more}; run "sluice fn render ${folder}" and commit the result`;
    findings.push(findingAt(names[0] ?? 'Kptfile', { severity: 'error', message, code: 'NotRendered' }));
  }
  return findingsBelow(folder, findings);
}

function gateFindings(files: ReadonlyMap<string, string>, requireGates: boolean): Finding[] {
  const read = readKptfile(files.get('Kptfile') ?? '');
  if (!read.ok) return [];
  const conditions = conditionsOf(read.kptfile);
  return gatesOf(read.kptfile).flatMap((type) => {
    const condition = conditions.get(type);
    if (condition?.status === 'True') return [];
    const state =
      condition === undefined
        ? 'is not set'
        : `is ${condition.status}${condition.message === undefined ? '' : ` (${condition.message})`}`;
    const severity = requireGates ? ('error' as const) : ('notice' as const);
    const index = (read.kptfile.info?.readinessGates ?? []).findIndex((gate) => gate.conditionType === type);
    const place = placeOfField(files, 'Kptfile', `info.readinessGates[${index}].conditionType`);
    return { ...place, severity, message: `gate ${type} is closed: its condition ${state}`, code: 'GateClosed' };
  });
}
