import { basename, join } from 'node:path';
import { conditionsOf, gatesOf, lintKptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import type { PipelineRunner } from '../../function/model/pipeline.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import { readPackageFolder } from '../fn/files/package-folder.ts';
import { checkLocalPackage } from '../kptfile/check-local-package.ts';

/** A problem of a package, or a fact about it. */
export interface CheckFinding {
  /** Relative to the root of the working tree; in the report to the current folder. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly severity: 'error' | 'warning' | 'notice';
  readonly message: string;
  /** One word for programs. */
  readonly code: string;
}

const MAX_NAMED_FILES = 5;

/**
 * Checks one package folder, with the packages in it: its YAML files and Kptfiles, whether it is rendered, and its gates. Only built-in functions
 * run; what needs another one is a warning.
 */
export async function checkPackage(
  root: string,
  folder: string,
  runner: PipelineRunner,
  { requireGates, signal }: { readonly requireGates: boolean; readonly signal: AbortSignal },
): Promise<readonly CheckFinding[]> {
  const place = folder === '.' ? '' : `${folder}/`;
  const { files, notes } = await readPackageFolder(join(root, folder));
  const at = (file: string, rest: Pick<CheckFinding, 'severity' | 'message' | 'code'>): CheckFinding => ({
    ...{ file: `${place}${file}`, line: 1, column: 1 },
    ...rest,
  });
  const findings: CheckFinding[] = [];
  for (const message of notes) findings.push(at('Kptfile', { severity: 'warning', message, code: 'Skipped' }));
  for (const [path, text] of files) {
    // Below, each closed gate is a finding.
    if (isKptfilePath(path))
      for (const { line, column, severity, message, code } of lintKptfile(text))
        if (code !== 'GateWithoutCondition')
          findings.push({ file: `${place}${path}`, line, column, severity, message, code });
  }
  const contents = new Map([...files].map(([path, text]) => [path, Buffer.from(text)]));
  if (!findings.some(({ severity }) => severity === 'error'))
    for (const problem of checkLocalPackage('', contents)) findings.push(yamlFinding(problem, place));
  // A package that cannot be read cannot be rendered.
  if (findings.some(({ severity }) => severity === 'error')) return findings;
  findings.push(...gateFindings(files.get('Kptfile') ?? '', requireGates).map((finding) => at('Kptfile', finding)));

  const input = { files, rules: [], validatorConditions: new Map() };
  const { edits, steps, failure } = await runner.run(input, signal);
  if (steps.some(({ unavailable }) => unavailable === true)) {
    const message = `not checked whether it is rendered: ${failure ?? 'a function of its pipeline cannot be run here'}`;
    findings.push(at('Kptfile', { severity: 'warning', message, code: 'NotRendered' }));
  } else if (failure !== undefined) {
    findings.push(at('Kptfile', { severity: 'error', message: failure, code: 'RenderFailed' }));
  } else if (edits.size > 0) {
    const names = [...edits.keys()].map((path) => `${place}${path}`);
    const shown = names.slice(0, MAX_NAMED_FILES).join(', ');
    const more = names.length > MAX_NAMED_FILES ? ` and ${names.length - MAX_NAMED_FILES} more` : '';
    const message = `the pipeline of ${basename(join(root, folder))} changes ${shown}${more}; run "sluice fn render ${folder}" and commit the result`;
    findings.push({ ...at('', { severity: 'error', message, code: 'NotRendered' }), file: names[0] ?? place });
  }
  return findings;
}

/** `<file>:<line>:<column>: <what>`, as `checkLocalPackage` writes it; without a place a count of further ones. */
function yamlFinding(problem: string, place: string): CheckFinding {
  const [, file, line, column, message] = /^([\s\S]*?):(\d+):(\d+): ([\s\S]*)$/.exec(problem) ?? [];
  return {
    ...{ file: `${place}${file ?? 'Kptfile'}`, line: Number(line ?? 1), column: Number(column ?? 1) },
    ...{ severity: 'error', message: message ?? problem, code: 'InvalidYaml' },
  };
}

function gateFindings(text: string, requireGates: boolean): Pick<CheckFinding, 'severity' | 'message' | 'code'>[] {
  const read = readKptfile(text);
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
    return { severity, message: `gate ${type} is closed: its condition ${state}`, code: 'GateClosed' };
  });
}
