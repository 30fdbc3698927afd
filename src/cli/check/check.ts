import { join, relative, resolve } from 'node:path';
import { untilStopped } from '../../app/service/until-stopped.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { externalFunctions } from '../../function/external/external-functions.ts';
import { type Finding, findingAt, findingsBelow } from '../../function/lint/finding.ts';
import { LINK, notAFile } from '../../function/lint/not-a-file.ts';
import { workerPipelineRunner } from '../../function/worker/worker-pipeline-runner.ts';
import { readPackageFolder } from '../fn/files/package-folder.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { allPackages, changedPackages, expectFolder, refusedEntries, workingTreeOf } from './changed-packages.ts';
import { checkBase } from './check-base.ts';
import { checkPackage } from './check-package.ts';
import { type CheckedFiles, mergeResult } from './merge-result.ts';

export interface CheckOptions {
  readonly base: string;
  readonly all?: boolean;
  /** Check what the base becomes by the merge, in place of the files that are checked out. */
  readonly merge?: boolean;
  readonly requireGates?: boolean;
  readonly output: 'text' | 'json' | 'yaml' | 'github';
}

const EXIT_INTERRUPTED = 130;
const COLORS = { error: 'red', warning: 'yellow', notice: 'cyan' } as const;

/** `sluice check`: exit code 1 if a package has an error. */
export async function check(folder: string, options: CheckOptions, { terminal }: Invocation): Promise<CommandResult> {
  const { root, packages, conflicts, read } = await sourceOf(folder, options);
  const instead = 'it is not run by "sluice check"';
  const external = externalFunctions({ programs: instead, containers: instead });
  const runner = workerPipelineRunner({ external, concurrency: 1 });
  const stop = untilStopped(() => terminal.note('stopping'));
  const findings: Finding[] = [...conflicts];
  const fromHere = (finding: Finding) => ({ ...finding, file: relative('.', join(root, finding.file)) });
  try {
    for (const one of packages) findings.push(...(await checkOne(one)));
  } catch (error) {
    if (stop.signal.aborted) return EXIT_INTERRUPTED;
    throw error;
  } finally {
    stop.release();
    await runner.close();
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const report = { packages, errors, findings: findings.map(fromHere) };
  if (options.output === 'json') terminal.out.write(toJson(report));
  else if (options.output === 'yaml') terminal.out.write(toYaml(report));
  else {
    for (const finding of report.findings)
      terminal.line(options.output === 'github' ? annotation(finding) : line(finding, terminal));
    const what = packages.length === 1 ? '1 package' : `${packages.length} packages`;
    terminal.note(`${what} checked, ${errors} ${errors === 1 ? 'error' : 'errors'}`);
  }
  return errors > 0 ? 1 : 0;

  async function checkOne(one: string): Promise<readonly Finding[]> {
    try {
      const settings = { requireGates: options.requireGates === true, signal: stop.signal };
      return await checkPackage(one, await read(one), runner, settings);
    } catch (error) {
      if (!isSluiceError(error, 'LimitExceeded')) throw error;
      return findingsBelow(one, [
        findingAt('Kptfile', { severity: 'error', message: error.message, code: 'TooLarge' }),
      ]);
    }
  }
}

interface Source {
  readonly root: string;
  readonly packages: readonly string[];
  readonly conflicts: readonly Finding[];
  read(folder: string): Promise<CheckedFiles>;
}

/** The packages to check, and where their files are. */
async function sourceOf(folder: string, { all, merge, base }: CheckOptions): Promise<Source> {
  if (all === true && merge === true) throw new SluiceError('InvalidInput', '--all and --merge exclude each other');
  if (base.startsWith('-')) throw new SluiceError('InvalidInput', `${JSON.stringify(base)} is no revision of git`);
  await expectFolder(folder);
  const root = all === true ? resolve(folder) : await workingTreeOf(folder);
  if (all !== true) await checkBase(root, base);
  if (merge === true) return { root, ...(await mergeResult(root, base)) };
  const { packages, changed } =
    all === true ? { packages: await allPackages(root), changed: new Map() } : await changedPackages(root, base);
  return { root, packages, conflicts: [], read: (one) => readFiles(root, one, changed) };
}

async function readFiles(root: string, folder: string, changed: ReadonlyMap<string, string>): Promise<CheckedFiles> {
  const { files, notes, links } = await readPackageFolder(join(root, folder));
  const refused = refusedEntries(folder, changed);
  const isNamed = (path: string) => refused.some(({ file }) => file === path);
  if (links.includes('Kptfile') && !isNamed('Kptfile')) refused.push(findingAt('Kptfile', notAFile(LINK)));
  const named = refused.map(({ file }) => `${printable(file)}: `);
  return { files, notes: notes.filter((note) => !named.some((name) => note.startsWith(name))), refused };
}

function line({ file, line: row, column, severity, message, code }: Finding, terminal: Invocation['terminal']): string {
  const label = terminal.style(COLORS[severity], severity);
  return `${printable(file)}:${row}:${column}: ${label}: ${printable(message)} (${code})`;
}

/** A command in the log of a workflow of GitHub, which it shows at the line of the file. */
function annotation({ file, line: row, column, severity, message, code }: Finding): string {
  const properties = { file, line: row, col: column, title: code };
  const list = Object.entries(properties).map(([name, value]) => `${name}=${escaped(String(value), true)}`);
  return `::${severity} ${list.join(',')}::${escaped(message, false)}`;
}

/** As GitHub's own toolkit does, so that a text cannot begin another command. */
function escaped(text: string, isProperty: boolean): string {
  const data = text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  return isProperty ? data.replaceAll(':', '%3A').replaceAll(',', '%2C') : data;
}
