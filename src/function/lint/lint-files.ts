import { lintKptfile } from '../../../kptfile-schema/index.ts';
import { isKptfilePath } from '../../package/merge/package-files.ts';
import { isYamlPath } from '../../package/model/krm/krm.ts';
import type { Finding } from './finding.ts';
import { yamlProblem } from './yaml-problem.ts';

/** Mistakes in YAML that are listed; a folder of templates has one in each file. */
const MAX_YAML_PROBLEMS = 20;

/**
 * Finds the mistakes in the Kptfiles of a package, its nested ones included, as strictly as kpt does; and, if its Kptfiles have no errors, in its
 * other YAML files. Closed gates are none of them.
 */
export function lintFiles(files: ReadonlyMap<string, string>): Finding[] {
  const findings: Finding[] = [];
  for (const [file, text] of files)
    if (isKptfilePath(file))
      for (const { line, column, severity, message, code } of lintKptfile(text))
        if (code !== 'GateWithoutCondition') findings.push({ file, line, column, severity, message, code });
  if (findings.some(({ severity }) => severity === 'error')) return findings;
  const problems: Finding[] = [];
  for (const [file, text] of files) {
    const problem = isYamlPath(file) ? yamlProblem(text) : undefined;
    if (problem !== undefined) problems.push({ file, ...problem, severity: 'error', code: 'InvalidYaml' });
  }
  const more = problems.length - MAX_YAML_PROBLEMS;
  findings.push(...problems.slice(0, MAX_YAML_PROBLEMS));
  if (more > 0) {
    const message = `${more} more files are not valid YAML`;
    findings.push({ ...{ file: 'Kptfile', line: 1, column: 1 }, severity: 'error', message, code: 'InvalidYaml' });
  }
  return findings;
}
