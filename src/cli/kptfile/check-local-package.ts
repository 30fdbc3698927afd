import { isUtf8 } from 'node:buffer';
import { join } from 'node:path';
import { type LintFinding, lintKptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { yamlProblem } from '../../function/lint/yaml-problem.ts';
import { isYamlPath } from '../../package/model/krm/krm.ts';

/** Problems that are named; a folder of templates has one in each file. */
const MAX_NAMED_PROBLEMS = 20;

/**
 * Returns the problems of files to be pushed, as `<file>:<line>:<column>: <what>`, for a warning. Throws InvalidInput, with the place,
 * for a Kptfile that cannot be read at all, which no draft can contain.
 */
export function checkLocalPackage(folder: string, files: ReadonlyMap<string, Buffer>): string[] {
  const problems: string[] = [];
  const kptfile = files.get('Kptfile');
  if (kptfile !== undefined) {
    const text = kptfile.toString('utf8');
    const [first] = lintKptfile(text).filter(({ severity }) => severity === 'error');
    // The server warns of other mistakes when it writes the Kptfile.
    if (first !== undefined && !readKptfile(text).ok)
      throw new SluiceError('InvalidInput', findingText(join(folder, 'Kptfile'), first));
  }
  for (const [path, data] of files) {
    const problem = isYamlPath(path) && isUtf8(data) ? yamlProblem(data.toString('utf8')) : undefined;
    if (problem === undefined) continue;
    const { line, column, message } = problem;
    problems.push(`${join(folder, path)}:${line}:${column}: ${message}`);
  }
  const more = problems.length - MAX_NAMED_PROBLEMS;
  return more > 0 ? [...problems.slice(0, MAX_NAMED_PROBLEMS), `and ${more} more problems in ${folder}`] : problems;
}

function findingText(place: string, { line, column, message }: LintFinding): string {
  return `${place}:${line}:${column}: ${message}`;
}
