import { join, relative, resolve } from 'node:path';
import { untilStopped } from '../../app/service/until-stopped.ts';
import { externalFunctions } from '../../function/external/external-functions.ts';
import { workerPipelineRunner } from '../../function/worker/worker-pipeline-runner.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { allPackages, changedPackages, workingTreeOf } from './changed-packages.ts';
import { type CheckFinding, checkPackage } from './check-package.ts';

export interface CheckOptions {
  readonly base: string;
  readonly all?: boolean;
  readonly requireGates?: boolean;
  readonly output: 'text' | 'json' | 'yaml' | 'github';
}

const EXIT_INTERRUPTED = 130;
const COLORS = { error: 'red', warning: 'yellow', notice: 'cyan' } as const;

/** `sluice check`: exit code 1 if a package has an error. */
export async function check(folder: string, options: CheckOptions, { terminal }: Invocation): Promise<CommandResult> {
  const root = options.all === true ? resolve(folder) : await workingTreeOf(folder);
  const packages = options.all === true ? await allPackages(root) : await changedPackages(root, options.base);
  const instead = 'it is not run by "sluice check"';
  const external = externalFunctions({ programs: instead, containers: instead });
  const runner = workerPipelineRunner({ external, concurrency: 1 });
  const stop = untilStopped(() => terminal.note('stopping'));
  const findings: CheckFinding[] = [];
  try {
    for (const one of packages) {
      const settings = { requireGates: options.requireGates === true, signal: stop.signal };
      const found = await checkPackage(root, one, runner, settings);
      findings.push(...found.map((finding) => ({ ...finding, file: relative('.', join(root, finding.file)) })));
    }
  } catch (error) {
    if (stop.signal.aborted) return EXIT_INTERRUPTED;
    throw error;
  } finally {
    stop.release();
    await runner.close();
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const report = { packages, errors, findings };
  if (options.output === 'json') terminal.out.write(toJson(report));
  else if (options.output === 'yaml') terminal.out.write(toYaml(report));
  else {
    for (const finding of findings)
      terminal.line(options.output === 'github' ? annotation(finding) : line(finding, terminal));
    const what = packages.length === 1 ? '1 package' : `${packages.length} packages`;
    terminal.note(`${what} checked, ${errors} ${errors === 1 ? 'error' : 'errors'}`);
  }
  return errors > 0 ? 1 : 0;
}

function line(
  { file, line: row, column, severity, message, code }: CheckFinding,
  terminal: Invocation['terminal'],
): string {
  const label = terminal.style(COLORS[severity], severity);
  return `${printable(file)}:${row}:${column}: ${label}: ${printable(message)} (${code})`;
}

/** A command in the log of a workflow of GitHub, which it shows at the line of the file. */
function annotation({ file, line: row, column, severity, message, code }: CheckFinding): string {
  const properties = { file, line: row, col: column, title: code };
  const list = Object.entries(properties).map(([name, value]) => `${name}=${escaped(String(value), true)}`);
  return `::${severity} ${list.join(',')}::${escaped(message, false)}`;
}

/** As GitHub's own toolkit does, so that a text cannot begin another command. */
function escaped(text: string, isProperty: boolean): string {
  const data = text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  return isProperty ? data.replaceAll(':', '%3A').replaceAll(',', '%2C') : data;
}
