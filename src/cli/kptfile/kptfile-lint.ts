import { lintKptfile } from '../../../kptfile-schema/index.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { readKptfileAt } from './kptfile-path.ts';

export interface LintOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

/** `sluice kptfile lint`: `<file>:<line>:<column>: <severity>: <message>`. Exit code 1 if there is an error, 0 with warnings only. */
export async function kptfileLint(
  folders: readonly string[],
  { output }: LintOptions,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const findings = [];
  for (const folder of folders.length === 0 ? ['.'] : folders) {
    const { path, text } = await readKptfileAt(folder);
    for (const { severity, line, column, message, code } of lintKptfile(text))
      findings.push({ file: path, line, column, severity, message, code });
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const warnings = findings.length - errors;
  if (output === 'text') {
    for (const { file, line, column, severity, message, code } of findings) {
      const label = terminal.style(severity === 'error' ? 'red' : 'yellow', severity);
      terminal.line(`${printable(file)}:${line}:${column}: ${label}: ${printable(message)} (${code})`);
    }
    if (findings.length > 0) terminal.note(`${count(errors, 'error')}, ${count(warnings, 'warning')}`);
  } else {
    const report = { errors, warnings, findings };
    terminal.out.write(output === 'json' ? toJson(report) : toYaml(report));
  }
  return errors > 0 ? 1 : 0;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
